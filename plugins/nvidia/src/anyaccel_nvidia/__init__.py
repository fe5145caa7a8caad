"""NVIDIA GPUs for anyaccel. The hooks are in `plugin`; nothing here loads a vendor library."""

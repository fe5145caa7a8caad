/* A libnvidia-ml.so.1 that answers from a text file, so that the real Python binding can be run without a driver.
 *
 * The file named by NVML_STUB_FILE holds one `key=value` a line. A value "!N" makes the call return N; a key that is not
 * there makes it return 3 (not supported). Structures and constants follow nvml.h as NVIDIA/go-nvml carries it
 * (gen/nvml/nvml.h, commit 075f45fd6a7be7b050f19b142a4631582010d719); their sizes and offsets are asserted below.
 * STUB_OLD leaves functions out that an old library does not have; STUB_NO_DRIVER finds no driver at its start.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OK 0
#define INVALID_ARGUMENT 2
#define NOT_SUPPORTED 3
#define NOT_FOUND 6
#define INSUFFICIENT_SIZE 7
#define VERSION_MISMATCH 25

#define MAX_LINES 8192
#define MAX_DEVICES 64
#define MAX_PARTITIONS 16

typedef struct { char busIdLegacy[16]; unsigned domain, bus, device, pciDeviceId, pciSubSystemId; char busId[32]; } PciInfo;
typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } MemoryV2;
typedef struct { unsigned gpu, memory; } Utilization;
typedef struct { unsigned pid; unsigned long long usedGpuMemory; unsigned gpuInstanceId, computeInstanceId; } ProcessInfo;
typedef struct {
    unsigned multiprocessorCount, sharedCopyEngineCount, sharedDecoderCount, sharedEncoderCount, sharedJpegCount,
        sharedOfaCount, gpuInstanceSliceCount, computeInstanceSliceCount;
    unsigned long long memorySizeMB;
} Attributes;
typedef struct {
    unsigned fieldId, scopeId;
    long long timestamp, latencyUsec;
    unsigned valueType, nvmlReturn;
    union { double d; unsigned u; unsigned long long ull; } value;
} FieldValue;
typedef struct {
    unsigned version;
    unsigned char clusterUuid[16];
    unsigned status, cliqueId;
    unsigned char state;
    unsigned healthMask;
} FabricInfoV2;

_Static_assert(sizeof(PciInfo) == 68, "nvmlPciInfo_t");
_Static_assert(offsetof(PciInfo, pciDeviceId) == 28 && offsetof(PciInfo, busId) == 36, "nvmlPciInfo_t");
_Static_assert(sizeof(Memory) == 24 && offsetof(Memory, used) == 16, "nvmlMemory_t");
_Static_assert(sizeof(MemoryV2) == 40 && offsetof(MemoryV2, reserved) == 16, "nvmlMemory_v2_t");
_Static_assert(sizeof(Utilization) == 8, "nvmlUtilization_t");
_Static_assert(sizeof(ProcessInfo) == 24 && offsetof(ProcessInfo, gpuInstanceId) == 16, "nvmlProcessInfo_v2_t");
_Static_assert(sizeof(Attributes) == 40 && offsetof(Attributes, gpuInstanceSliceCount) == 24, "nvmlDeviceAttributes_t");
_Static_assert(sizeof(FieldValue) == 40 && offsetof(FieldValue, value) == 32, "nvmlFieldValue_t");
_Static_assert(sizeof(FabricInfoV2) == 36 && offsetof(FabricInfoV2, healthMask) == 32, "nvmlGpuFabricInfo_v2_t");

typedef struct { int gpu, partition; } Device;

static char *keys[MAX_LINES], *values[MAX_LINES];
static int line_count = -1;
static Device devices[MAX_DEVICES], partitions[MAX_DEVICES][MAX_PARTITIONS];

static void load(void) {
    char line[1024];
    const char *path = getenv("NVML_STUB_FILE");
    FILE *file = path != NULL ? fopen(path, "r") : NULL;
    line_count = 0;
    while (file != NULL && line_count < MAX_LINES && fgets(line, sizeof line, file) != NULL) {
        char *equals = strchr(line, '=');
        if (equals == NULL) continue;
        line[strcspn(line, "\n")] = 0;
        *equals = 0;
        keys[line_count] = strdup(line);
        values[line_count++] = strdup(equals + 1);
    }
    if (file != NULL) fclose(file);
}

/* Give the value of a key below a device or partition, or its return code. */
static int find(const char *key, const char **value) {
    if (line_count < 0) load();
    for (int i = 0; i < line_count; i++)
        if (strcmp(keys[i], key) == 0) {
            *value = values[i];
            return values[i][0] == '!' ? atoi(values[i] + 1) : OK;
        }
    return NOT_SUPPORTED;
}

static int find_of(const Device *device, const char *name, const char **value) {
    char key[128];
    if (device == NULL) return INVALID_ARGUMENT;
    if (device->partition < 0) snprintf(key, sizeof key, "d%d.%s", device->gpu, name);
    else snprintf(key, sizeof key, "d%d.m%d.%s", device->gpu, device->partition, name);
    return find(key, value);
}

static int find_link(const Device *device, unsigned link, const char *name, const char **value) {
    char key[64];
    snprintf(key, sizeof key, "l%u.%s", link, name);
    return find_of(device, key, value);
}

static int give_text(int code, const char *value, char *buffer, unsigned length) {
    if (code != OK) return code;
    if (strlen(value) + 1 > length) return INSUFFICIENT_SIZE;
    memcpy(buffer, value, strlen(value) + 1);
    return OK;
}

static int give_numbers(int code, const char *value, int count, unsigned **out) {
    char *rest = (char *)value;
    for (int i = 0; code == OK && i < count; i++) *out[i] = (unsigned)strtoul(rest, &rest, 0);
    return code;
}

static int number_of(const Device *device, const char *name, unsigned *out) {
    const char *value = NULL;
    int code = find_of(device, name, &value);
    return give_numbers(code, value, 1, &out);
}

static int large_of(const Device *device, const char *name, unsigned long long *out) {
    const char *value = NULL;
    int code = find_of(device, name, &value);
    if (code == OK) *out = strtoull(value, NULL, 0);
    return code;
}

static int pci_of(int code, const char *value, const Device *device, PciInfo *info) {
    if (code != OK) return code;
    memset(info, 0, sizeof *info);
    snprintf(info->busId, sizeof info->busId, "%s", value);
    snprintf(info->busIdLegacy, sizeof info->busIdLegacy, "%.15s", strlen(value) > 4 ? value + 4 : value);
    sscanf(value, "%x:%x:%x", &info->domain, &info->bus, &info->device);
    number_of(device, "pci_device", &info->pciDeviceId);
    return OK;
}

int nvmlInitWithFlags(unsigned flags) {
    const char *value = NULL;
    (void)flags;
#ifdef STUB_NO_DRIVER
    return 9;
#endif
    if (find("action", &value) == OK && strcmp(value, "hang") == 0) for (;;) sleep(3600);
    if (value != NULL && strcmp(value, "crash") == 0) abort();
    return find("init", &value) == OK ? atoi(value) : OK;
}

int nvmlShutdown(void) { return OK; }

int nvmlSystemGetNVMLVersion(char *buffer, unsigned length) {
    const char *value = NULL;
    int code = find("nvml_version", &value);
    return give_text(code, value, buffer, length);
}

int nvmlSystemGetDriverVersion(char *buffer, unsigned length) {
    const char *value = NULL;
    int code = find("driver_version", &value);
    return give_text(code, value, buffer, length);
}

int nvmlSystemGetCudaDriverVersion_v2(int *version) {
    const char *value = NULL;
    int code = find("cuda_version", &value);
    if (code == OK) *version = atoi(value);
    return code;
}

int nvmlDeviceGetCount_v2(unsigned *count) {
    const char *value = NULL;
    int code = find("count", &value);
    return give_numbers(code, value, 1, &count);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device **device) {
    char key[32];
    const char *value = NULL;
    snprintf(key, sizeof key, "d%u.handle", index);
    int code = index < MAX_DEVICES ? find(key, &value) : INVALID_ARGUMENT;
    if (code == NOT_SUPPORTED) return INVALID_ARGUMENT;
    if (code != OK) return code;
    devices[index] = (Device){(int)index, -1};
    *device = &devices[index];
    return OK;
}

int nvmlDeviceGetName(Device *device, char *buffer, unsigned length) {
    const char *value = NULL;
    int code = find_of(device, "name", &value);
    return give_text(code, value, buffer, length);
}

int nvmlDeviceGetUUID(Device *device, char *buffer, unsigned length) {
    const char *value = NULL;
    int code = find_of(device, "uuid", &value);
    return give_text(code, value, buffer, length);
}

int nvmlDeviceGetMinorNumber(Device *device, unsigned *minor) { return number_of(device, "minor", minor); }

int nvmlDeviceGetPciInfo_v3(Device *device, PciInfo *info) {
    const char *value = NULL;
    int code = find_of(device, "pci", &value);
    return pci_of(code, value, device, info);
}

int nvmlDeviceGetMemoryInfo(Device *device, Memory *memory) {
    int code = large_of(device, "memory_total", &memory->total);
    if (code == OK && large_of(device, "memory_used", &memory->used) == OK) memory->free = memory->total - memory->used;
    return code;
}

int nvmlDeviceGetMemoryInfo_v2(Device *device, MemoryV2 *memory) {
    if (memory->version != (sizeof *memory | 2u << 24)) return VERSION_MISMATCH;
    int code = large_of(device, "memory_reserved", &memory->reserved);
    return code == OK ? large_of(device, "memory_total", &memory->total) : code;
}

int nvmlDeviceGetMemoryAffinity(Device *device, unsigned size, unsigned long *nodes, unsigned scope) {
    const char *value = NULL;
    int code = find_of(device, "nodes", &value);
    if (code == OK && (scope > 1 || size == 0)) return INVALID_ARGUMENT;
    char *rest = (char *)value;
    for (unsigned i = 0; code == OK && i < size; i++) nodes[i] = strtoul(rest, &rest, 0);
    return code;
}

int nvmlDeviceGetCudaComputeCapability(Device *device, int *major, int *minor) {
    const char *value = NULL;
    unsigned *out[] = {(unsigned *)major, (unsigned *)minor};
    int code = find_of(device, "cc", &value);
    return give_numbers(code, value, 2, out);
}

int nvmlDeviceGetMaxClockInfo(Device *device, unsigned type, unsigned *clock) {
    return type == 1 ? number_of(device, "sm_clock", clock) : NOT_SUPPORTED;
}

int nvmlDeviceGetComputeMode(Device *device, unsigned *mode) { return number_of(device, "compute_mode", mode); }

int nvmlDeviceGetDisplayActive(Device *device, unsigned *active) { return number_of(device, "display", active); }

int nvmlDeviceGetMigMode(Device *device, unsigned *current, unsigned *pending) {
    const char *value = NULL;
    unsigned *out[] = {current, pending};
    int code = find_of(device, "mig_mode", &value);
    return give_numbers(code, value, 2, out);
}

int nvmlDeviceGetEccMode(Device *device, unsigned *current, unsigned *pending) {
    const char *value = NULL;
    unsigned *out[] = {current, pending};
    int code = find_of(device, "ecc_mode", &value);
    return give_numbers(code, value, 2, out);
}

int nvmlDeviceGetTotalEccErrors(Device *device, unsigned type, unsigned counter, unsigned long long *count) {
    if (type != 1) return NOT_SUPPORTED;
    return large_of(device, counter == 0 ? "ecc_volatile" : "ecc_aggregate", count);
}

int nvmlDeviceGetRemappedRows(Device *device, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failed) {
    const char *value = NULL;
    unsigned *out[] = {corrected, uncorrected, pending, failed};
    int code = find_of(device, "rows", &value);
    return give_numbers(code, value, 4, out);
}

int nvmlDeviceGetRetiredPages(Device *device, unsigned cause, unsigned *count, unsigned long long *addresses) {
    unsigned pages = 0, room = *count;
    int code = cause == 1 ? number_of(device, "pages", &pages) : NOT_SUPPORTED;
    if (code != OK) return code;
    *count = pages;
    if (pages > room || addresses == NULL) return pages > 0 ? INSUFFICIENT_SIZE : OK;
    for (unsigned i = 0; i < pages; i++) addresses[i] = 0x1000ull * (i + 1);
    return OK;
}

int nvmlDeviceGetRetiredPagesPendingStatus(Device *device, unsigned *pending) {
    return number_of(device, "pages_pending", pending);
}

int nvmlDeviceGetComputeRunningProcesses_v3(Device *device, unsigned *count, ProcessInfo *processes) {
    const char *value = NULL;
    unsigned room = *count, found = 0;
    int code = find_of(device, "pids", &value);
    if (code != OK) return code;
    for (char *rest = (char *)value, *end; strtoul(rest, &end, 10) != 0 && end != rest; rest = end, found++)
        if (found < room && processes != NULL)
            processes[found] = (ProcessInfo){(unsigned)strtoul(rest, NULL, 10), 1 << 20, ~0u, ~0u};
    *count = found;
    return found > room ? INSUFFICIENT_SIZE : OK;
}

int nvmlDeviceGetMaxMigDeviceCount(Device *device, unsigned *count) { return number_of(device, "mig_count", count); }

int nvmlDeviceGetMigDeviceHandleByIndex(Device *device, unsigned index, Device **partition) {
    char name[32];
    const char *value = NULL;
    snprintf(name, sizeof name, "m%u.name", index);
    if (index >= MAX_PARTITIONS || find_of(device, name, &value) != OK) return NOT_FOUND;
    partitions[device->gpu][index] = (Device){device->gpu, (int)index};
    *partition = &partitions[device->gpu][index];
    return OK;
}

int nvmlDeviceGetGpuInstanceId(Device *device, unsigned *id) { return number_of(device, "gi", id); }

int nvmlDeviceGetComputeInstanceId(Device *device, unsigned *id) { return number_of(device, "ci", id); }

int nvmlDeviceGetAttributes_v2(Device *device, Attributes *attributes) {
    memset(attributes, 0, sizeof *attributes);
    number_of(device, "gpu_slices", &attributes->gpuInstanceSliceCount);
    number_of(device, "compute_slices", &attributes->computeInstanceSliceCount);
    return number_of(device, "multiprocessors", &attributes->multiprocessorCount);
}

int nvmlDeviceGetNvLinkState(Device *device, unsigned link, unsigned *state) {
    const char *value = NULL;
    int code = find_link(device, link, "state", &value);
    return give_numbers(code, value, 1, &state);
}

int nvmlDeviceGetNvLinkVersion(Device *device, unsigned link, unsigned *version) {
    const char *value = NULL;
    int code = find_link(device, link, "version", &value);
    return give_numbers(code, value, 1, &version);
}

int nvmlDeviceGetNvLinkRemoteDeviceType(Device *device, unsigned link, unsigned *type) {
    const char *value = NULL;
    int code = find_link(device, link, "remote_type", &value);
    return give_numbers(code, value, 1, &type);
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(Device *device, unsigned link, PciInfo *info) {
    const char *value = NULL;
    int code = find_link(device, link, "pci", &value);
    return pci_of(code, value, device, info);
}

int nvmlDeviceGetFieldValues(Device *device, int count, FieldValue *fields) {
    for (int i = 0; i < count; i++) {
        const char *value = NULL;
        unsigned *out = &fields[i].value.u;
        int code = fields[i].fieldId == 164 ? find_link(device, fields[i].scopeId, "speed", &value) : NOT_SUPPORTED;
        fields[i].valueType = 1;
        fields[i].nvmlReturn = (unsigned)give_numbers(code, value, 1, &out);
    }
    return OK;
}

int nvmlDeviceGetP2PStatus(Device *a, Device *b, unsigned index, unsigned *status) {
    char key[32];
    const char *value = NULL;
    snprintf(key, sizeof key, "p%d.%d.peer%u", a->gpu, b->gpu, index);
    int code = find(key, &value);
    return give_numbers(code, value, 1, &status);
}

int nvmlDeviceGetPowerUsage(Device *device, unsigned *milliwatts) { return number_of(device, "power", milliwatts); }

int nvmlDeviceGetTemperature(Device *device, unsigned sensor, unsigned *celsius) {
    return sensor == 0 ? number_of(device, "temperature", celsius) : NOT_SUPPORTED;
}

int nvmlDeviceGetUtilizationRates(Device *device, Utilization *utilization) {
    utilization->memory = 0;
    return number_of(device, "utilization", &utilization->gpu);
}

#ifndef STUB_OLD
int nvmlDeviceGetNumGpuCores(Device *device, unsigned *cores) { return number_of(device, "cores", cores); }

int nvmlDeviceGetNumaNodeId(Device *device, unsigned *node) { return number_of(device, "numa", node); }

int nvmlDeviceGetGpuFabricInfoV(Device *device, FabricInfoV2 *info) {
    const char *value = NULL;
    unsigned state = 0;
    unsigned *out[] = {&info->status, &info->cliqueId, &state, &info->healthMask};
    if (info->version != (sizeof *info | 2u << 24)) return VERSION_MISMATCH;
    int code = find_of(device, "fabric", &value);
    for (int i = 0; code == OK && i < 16; i++) {
        char digits[3] = {value[2 * i], value[2 * i + 1], 0};
        info->clusterUuid[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
    if (code != OK) return code;
    give_numbers(code, value + 32, 4, out);
    info->state = (unsigned char)state;
    return OK;
}
#endif

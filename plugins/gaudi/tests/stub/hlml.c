/* A stub of libhlml: one line a card in the file named by HLML_STUB.
   bus_id module minor uuid total_mib used_mib power_mw temperature percent ports, "-" for a value that it refuses. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST 16
#define FIELDS 10
enum { BUS, MODULE, MINOR, UUID, TOTAL, USED, POWER, TEMPERATURE, PERCENT, PORTS };
enum { OK = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, NO_DRIVER = 9, LOST = 15 };

typedef struct { char field[FIELDS][64]; } card_t;
static card_t cards[MOST];
static unsigned count;
static int ready;

int hlml_init(void) {
    const char *path = getenv("HLML_STUB");
    if (getenv("HLML_STUB_HANGS")) for (;;) pause();
    printf("this library greets\n");
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!file) return NO_DRIVER;
    char line[512];
    while (count < MOST && fgets(line, sizeof line, file)) {
        char *word = strtok(line, " \n");
        for (int i = 0; i < FIELDS && word; i++, word = strtok(NULL, " \n"))
            snprintf(cards[count].field[i], sizeof cards[count].field[i], "%s", word);
        count++;
    }
    fclose(file);
    ready = 1;
    return OK;
}

int hlml_shutdown(void) { ready = 0; return OK; }
int hlml_device_get_count(unsigned *n) { if (!ready) return UNINITIALIZED; *n = count; return OK; }

int hlml_device_get_handle_by_index(unsigned index, void **device) {
    if (index >= count) return INVALID;
    if (strcmp(cards[index].field[BUS], "lost") == 0) return LOST;
    *device = &cards[index];
    return OK;
}

static int text(void *device, int field, char *out, unsigned length) {
    const char *word = ((card_t *)device)->field[field];
    if (strcmp(word, "-") == 0) return NOT_SUPPORTED;
    snprintf(out, length, "%s", word);
    return OK;
}

static int number(void *device, int field, unsigned *out) {
    char word[64];
    int code = text(device, field, word, sizeof word);
    if (code == OK) *out = (unsigned)strtoul(word, NULL, 10);
    return code;
}

int hlml_device_get_name(void *device, char *out, unsigned length) { (void)device; snprintf(out, length, "HL-225"); return OK; }
int hlml_device_get_uuid(void *device, char *out, unsigned length) { return text(device, UUID, out, length); }
int hlml_device_get_module_id(void *device, unsigned *out) { return number(device, MODULE, out); }
int hlml_device_get_minor_number(void *device, unsigned *out) { return number(device, MINOR, out); }
int hlml_device_get_power_usage(void *device, unsigned *out) { return number(device, POWER, out); }

int hlml_device_get_temperature(void *device, unsigned sensor, unsigned *out) {
    return sensor == 0 ? number(device, TEMPERATURE, out) : NOT_SUPPORTED;
}

typedef struct { unsigned bus; char bus_id[19]; unsigned device, domain, pci_device_id; char caps[40]; unsigned rev, subsys; } pci_t;
_Static_assert(sizeof(pci_t) == 84, "hlml_pci_info_t");
int hlml_device_get_pci_info(void *device, pci_t *out) {
    memset(out, 0, sizeof *out);
    return text(device, BUS, out->bus_id, sizeof out->bus_id);
}

typedef struct { unsigned long long free, total, used; } memory_t;
int hlml_device_get_memory_info(void *device, memory_t *out) {
    unsigned total, used;
    if (number(device, TOTAL, &total) != OK || number(device, USED, &used) != OK) return NOT_SUPPORTED;
    out->total = (unsigned long long)total << 20;
    out->used = (unsigned long long)used << 20;
    out->free = out->total - out->used;
    return OK;
}

typedef struct { unsigned aip, memory; } utilization_t;
int hlml_device_get_utilization_rates(void *device, utilization_t *out) { out->memory = 0; return number(device, PERCENT, &out->aip); }

#ifndef OLD
int hlml_device_get_total_ecc_errors(void *device, int type, int counter, long long *out) {
    (void)device;
    *out = counter == 1 ? (type == 1 ? 2 : 5) : 0;
    return OK;
}
#endif

int hlml_nic_get_link(void *device, uint32_t port, bool *up) {
    const char *word = ((card_t *)device)->field[PORTS];
    if (port >= strlen(word) || word[0] == '-') return INVALID;
    *up = word[port] == '1';
    return OK;
}

/* NVIDIA's management library, as far as the farm asks it, told by a file.
 *
 * FARM_FAKE_NVML names a file of lines: uuid name celsius mhz watts reasons pid (0: none).
 * Built as libnvidia-ml.so.1; nvidia-ml-py loads it in the real one's place.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { char uuid[80], name[80]; unsigned celsius, mhz, watts; unsigned long long reasons; unsigned pid; } gpu_t;
typedef struct { unsigned long long total, free, used; } memory_t;
typedef struct { unsigned gpu, memory; } utilization_t;
typedef struct { unsigned pid; unsigned long long used; unsigned gi, ci; } process_t;
enum { OK = 0, UNINITIALIZED = 1, INSUFFICIENT = 7, NOT_SUPPORTED = 3, DRIVER_NOT_LOADED = 9 };

static gpu_t gpus[16];
static unsigned count;

static int load(void) {
    const char *path = getenv("FARM_FAKE_NVML");
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!file) return DRIVER_NOT_LOADED;
    count = 0;
    while (count < 16) {
        gpu_t *g = &gpus[count];
        if (fscanf(file, "%79s %79s %u %u %u %llu %u", g->uuid, g->name, &g->celsius, &g->mhz, &g->watts, &g->reasons, &g->pid) != 7) break;
        count++;
    }
    fclose(file);
    return OK;
}

int nvmlInitWithFlags(unsigned flags) { (void)flags; return load(); }
int nvmlInit_v2(void) { return load(); }
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int code) { return code == DRIVER_NOT_LOADED ? "Driver Not Loaded" : "Unknown Error"; }
int nvmlSystemGetDriverVersion(char *to, unsigned size) { snprintf(to, size, "535.0-fake"); return OK; }
int nvmlDeviceGetCount_v2(unsigned *to) { *to = count; return OK; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **to) { *to = &gpus[index]; return index < count ? OK : NOT_SUPPORTED; }
int nvmlDeviceGetName(gpu_t *g, char *to, unsigned size) { snprintf(to, size, "%s", g->name); return OK; }
int nvmlDeviceGetUUID(gpu_t *g, char *to, unsigned size) { snprintf(to, size, "%s", g->uuid); return OK; }
int nvmlDeviceGetMemoryInfo(gpu_t *g, memory_t *to) { (void)g; to->total = 11ull << 30; to->used = 1ull << 30; to->free = to->total - to->used; return OK; }
int nvmlDeviceGetUtilizationRates(gpu_t *g, utilization_t *to) { (void)g; to->gpu = 50; to->memory = 10; return OK; }
int nvmlDeviceGetTemperature(gpu_t *g, int sensor, unsigned *to) { (void)sensor; *to = g->celsius; return OK; }
int nvmlDeviceGetClockInfo(gpu_t *g, int kind, unsigned *to) { (void)kind; *to = g->mhz; return OK; }
int nvmlDeviceGetMaxClockInfo(gpu_t *g, int kind, unsigned *to) { (void)g; (void)kind; (void)to; return NOT_SUPPORTED; }
int nvmlDeviceGetPowerUsage(gpu_t *g, unsigned *to) { *to = g->watts * 1000; return OK; }
int nvmlDeviceGetEnforcedPowerLimit(gpu_t *g, unsigned *to) { (void)g; *to = 250000; return OK; }
int nvmlDeviceGetCurrentClocksThrottleReasons(gpu_t *g, unsigned long long *to) { *to = g->reasons; return OK; }

int nvmlDeviceGetComputeRunningProcesses_v3(gpu_t *g, unsigned *size, process_t *to) {
    unsigned there = g->pid ? 1 : 0;
    if (*size < there) { *size = there; return INSUFFICIENT; }
    *size = there;
    if (there) { memset(to, 0, sizeof *to); to->pid = g->pid; to->used = 1ull << 29; }
    return OK;
}

// Instances (MIG) of the stand-in for NVIDIA's library: what the driver keeps of them lies in a file beside the library, as several programs ask it.
// Return codes and numbers of profiles are those of an A100-SXM4-40GB (nvidia-smi mig -lgip) and of nvml.h. Files beside the library make it do what is rare:
//   held-N        another program has GPU N open: its MIG mode stays pending
//   process-N     the number in it is that of a process which computes on GPU N, and keeps its instances
//   full-N        GPU N has no room for a further instance
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>

enum { most = 8, mostCI = 7, slots = 10 };
struct nvmlGpuInstance_st { unsigned gpu, id; };
struct nvmlComputeInstance_st { unsigned gpu, gi, id; };
static const struct { unsigned slot, id, slices, count, size, first, memory, processors; } profiles[] = {
	{0, 19, 1, 7, 1, 7, 4864, 14}, {1, 14, 2, 3, 2, 3, 9856, 28}, {2, 9, 3, 2, 4, 1, 19968, 42}, {3, 5, 4, 1, 4, 1, 19968, 56},
	{4, 0, 7, 1, 8, 0, 40192, 98}, {7, 20, 1, 1, 1, 7, 4864, 14}, {9, 15, 1, 4, 2, 3, 9856, 14},
};
enum { kinds = sizeof profiles / sizeof *profiles };

struct gi { int used; unsigned id, kind, start, ci[mostCI]; }; // ci: slices of each, 0 for none
static struct card { unsigned mode, pending; struct gi gi[most]; } cards[gpus];

static const char *beside(const char *name, unsigned gpu) {
	static char path[4096];
	Dl_info info;
	dladdr(cards, &info);
	const char *end = strrchr(info.dli_fname, '/');
	if (gpu < gpus) snprintf(path, sizeof path, "%.*s/%s-%u", (int)(end - info.dli_fname), info.dli_fname, name, gpu);
	else snprintf(path, sizeof path, "%.*s/%s", (int)(end - info.dli_fname), info.dli_fname, name);
	return path;
}
static int is(const char *name, unsigned gpu) { return !access(beside(name, gpu), F_OK); }

static void load(void) {
	memset(cards, 0, sizeof cards);
	int f = open(beside("instances", gpus), O_RDONLY);
	if (f < 0) return;
	if (read(f, cards, sizeof cards) != sizeof cards) memset(cards, 0, sizeof cards);
	close(f);
}
static void store(void) {
	int f = open(beside("instances", gpus), O_WRONLY | O_CREAT, 0644);
	if (f < 0) return;
	if (write(f, cards, sizeof cards) < 0) {}
	close(f);
}

// Instances are devices, too: of[] has the GPUs, this one the places for theirs.
static struct nvmlDevice_st part[gpus][most * mostCI];
static int isPart(nvmlDevice_t d, unsigned *gpu, unsigned *gi, unsigned *ci) {
	if (d.handle < &part[0][0] || d.handle > &part[gpus - 1][most * mostCI - 1]) return 0;
	unsigned n = d.handle - &part[0][0];
	*gpu = n / (most * mostCI), *gi = n / mostCI % most, *ci = n % mostCI;
	return 1;
}

static struct gi *giOf(nvmlGpuInstance_t g) {
	load();
	for (unsigned i = 0; i < most; i++) {
		struct gi *one = &cards[g.handle->gpu].gi[i];
		if (one->used && one->id == g.handle->id) return one;
	}
	return NULL;
}
static nvmlGpuInstance_t giHandle(unsigned gpu, unsigned id) {
	static struct nvmlGpuInstance_st all[gpus][16];
	all[gpu][id].gpu = gpu, all[gpu][id].id = id;
	nvmlGpuInstance_t out = {&all[gpu][id]};
	return out;
}
static nvmlComputeInstance_t ciHandle(unsigned gpu, unsigned gi, unsigned id) {
	static struct nvmlComputeInstance_st all[gpus][16][mostCI];
	struct nvmlComputeInstance_st *c = &all[gpu][gi][id];
	c->gpu = gpu, c->gi = gi, c->id = id;
	nvmlComputeInstance_t out = {c};
	return out;
}

static nvmlReturn_t profileInfo(unsigned slot, nvmlGpuInstanceProfileInfo_t *to) {
	if (slot >= slots) return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned k = 0; k < kinds; k++)
		if (profiles[k].slot == slot) {
			memset(to, 0, sizeof *to);
			to->id = profiles[k].id, to->sliceCount = profiles[k].slices, to->instanceCount = profiles[k].count;
			to->multiprocessorCount = profiles[k].processors, to->memorySizeMB = profiles[k].memory, to->copyEngineCount = profiles[k].slices;
			return NVML_SUCCESS;
		}
	return NVML_ERROR_NOT_SUPPORTED;
}
nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t d, unsigned slot, nvmlGpuInstanceProfileInfo_t *to) { return profileInfo(slot, to); }

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t d, unsigned *now, unsigned *pending) {
	load();
	*now = cards[d.handle->index].mode, *pending = cards[d.handle->index].pending;
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t d, unsigned mode, nvmlReturn_t *activation) {
	if (mode > 1) return NVML_ERROR_INVALID_ARGUMENT;
	if (geteuid()) return NVML_ERROR_NO_PERMISSION;
	load();
	struct card *c = &cards[d.handle->index];
	int busy = is("held", d.handle->index) || is("process", d.handle->index);
	for (unsigned i = 0; i < most; i++) busy |= c->gi[i].used;
	c->pending = mode;
	*activation = busy && c->mode != mode ? NVML_ERROR_IN_USE : NVML_SUCCESS;
	if (*activation == NVML_SUCCESS) c->mode = mode;
	store();
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceCreateGpuInstance(nvmlDevice_t d, unsigned profile, nvmlGpuInstance_t *to) {
	load();
	struct card *c = &cards[d.handle->index];
	if (!c->mode) return NVML_ERROR_NOT_SUPPORTED;
	for (unsigned k = 0; k < kinds; k++) {
		if (profiles[k].id != profile) continue;
		unsigned same = 0, slices = profiles[k].slices, ids = 0, map = 0;
		struct gi *empty = NULL;
		for (unsigned i = 0; i < most; i++) {
			struct gi *g = &c->gi[i];
			if (!g->used) { empty = g; continue; }
			same += g->kind == k, slices += profiles[g->kind].slices, ids |= 1u << g->id;
			map |= ((1u << profiles[g->kind].size) - 1) << g->start;
		}
		if (is("full", d.handle->index) || same == profiles[k].count || slices > 7 || !empty) return NVML_ERROR_INSUFFICIENT_RESOURCES;
		// 3g may begin in the middle, 4g and 7g may not; 1g not in the last slice of memory.
		for (int start = profiles[k].slices >= 4 ? 0 : 8 - profiles[k].size; start >= 0; start--) {
			unsigned mine = ((1u << profiles[k].size) - 1) << start;
			if (start % profiles[k].size || mine & map || profiles[k].size == 1 && start == 7) continue;
			if (profiles[k].slices == 2 && start == 6) continue;
			memset(empty, 0, sizeof *empty);
			empty->used = 1, empty->kind = k, empty->start = start, empty->id = profiles[k].first;
			while (ids & 1u << empty->id) empty->id++;
			store();
			*to = giHandle(d.handle->index, empty->id);
			return NVML_SUCCESS;
		}
		return NVML_ERROR_INSUFFICIENT_RESOURCES;
	}
	return NVML_ERROR_INVALID_ARGUMENT;
}
nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t d, unsigned profile, nvmlGpuInstance_t *to, unsigned *count) {
	load();
	struct card *c = &cards[d.handle->index];
	if (!c->mode) return NVML_ERROR_NOT_SUPPORTED;
	*count = 0;
	for (unsigned i = 0; i < most; i++)
		if (c->gi[i].used && profiles[c->gi[i].kind].id == profile) to[(*count)++] = giHandle(d.handle->index, c->gi[i].id);
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t d, unsigned id, nvmlGpuInstance_t *to) {
	if (id >= 16) return NVML_ERROR_INVALID_ARGUMENT;
	*to = giHandle(d.handle->index, id);
	return giOf(*to) ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}
nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t g, nvmlGpuInstanceInfo_t *to) {
	struct gi *one = giOf(g);
	if (!one) return NVML_ERROR_INVALID_ARGUMENT;
	to->device.handle = &of[g.handle->gpu], to->id = one->id, to->profileId = profiles[one->kind].id;
	to->placement.start = one->start, to->placement.size = profiles[one->kind].size;
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t g) {
	struct gi *one = giOf(g);
	if (!one) return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned i = 0; i < mostCI; i++)
		if (one->ci[i]) return NVML_ERROR_IN_USE;
	one->used = 0;
	store();
	return NVML_SUCCESS;
}

// Compute instances have profiles of 1, 2, 3, 4 and 7 slices, numbered by their places in this list.
static unsigned slicesOfCI(unsigned slot) { return slot < 4 ? slot + 1 : slot == 4 ? 7 : 0; }
nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_t g, unsigned slot, unsigned engines, nvmlComputeInstanceProfileInfo_t *to) {
	struct gi *one = giOf(g);
	if (!one || slot > 7 || engines) return NVML_ERROR_INVALID_ARGUMENT;
	unsigned slices = slicesOfCI(slot), of = profiles[one->kind].slices;
	if (!slices || slices > of) return NVML_ERROR_NOT_SUPPORTED;
	memset(to, 0, sizeof *to);
	to->id = slot, to->sliceCount = slices, to->instanceCount = of / slices, to->multiprocessorCount = 14 * slices, to->sharedCopyEngineCount = of;
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t g, unsigned profile, nvmlComputeInstance_t *to) {
	struct gi *one = giOf(g);
	unsigned slices = slicesOfCI(profile), taken = 0, place = mostCI;
	if (!one || !slices) return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned i = mostCI; i-- > 0;) {
		taken += one->ci[i];
		if (!one->ci[i]) place = i;
	}
	if (taken + slices > profiles[one->kind].slices) return NVML_ERROR_INSUFFICIENT_RESOURCES;
	one->ci[place] = slices;
	store();
	*to = ciHandle(g.handle->gpu, one->id, place);
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t g, unsigned profile, nvmlComputeInstance_t *to, unsigned *count) {
	struct gi *one = giOf(g);
	if (!one) return NVML_ERROR_INVALID_ARGUMENT;
	*count = 0;
	for (unsigned i = 0; i < mostCI; i++)
		if (one->ci[i] && one->ci[i] == slicesOfCI(profile)) to[(*count)++] = ciHandle(g.handle->gpu, one->id, i);
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t g, unsigned id, nvmlComputeInstance_t *to) {
	struct gi *one = giOf(g);
	if (!one || id >= mostCI || !one->ci[id]) return NVML_ERROR_NOT_FOUND;
	*to = ciHandle(g.handle->gpu, one->id, id);
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t c, nvmlComputeInstanceInfo_t *to) {
	struct gi *one = giOf(giHandle(c.handle->gpu, c.handle->gi));
	if (!one || !one->ci[c.handle->id]) return NVML_ERROR_INVALID_ARGUMENT;
	memset(to, 0, sizeof *to);
	to->device.handle = &of[c.handle->gpu], to->gpuInstance = giHandle(c.handle->gpu, one->id), to->id = c.handle->id;
	for (unsigned slot = 0; slot < 5; slot++)
		if (slicesOfCI(slot) == one->ci[c.handle->id]) to->profileId = slot;
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t c) {
	struct gi *one = giOf(giHandle(c.handle->gpu, c.handle->gi));
	if (!one || !one->ci[c.handle->id]) return NVML_ERROR_INVALID_ARGUMENT;
	if (is("process", c.handle->gpu)) return NVML_ERROR_IN_USE;
	one->ci[c.handle->id] = 0;
	store();
	return NVML_SUCCESS;
}

// Devices that are instances.
nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t d, unsigned *to) { *to = 7; return NVML_SUCCESS; } // with MIG off, too
nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t d, unsigned index, nvmlDevice_t *to) {
	load();
	unsigned gpu = d.handle->index, n = 0;
	for (unsigned i = 0; cards[gpu].mode && i < most; i++)
		for (unsigned j = 0; cards[gpu].gi[i].used && j < mostCI; j++)
			if (cards[gpu].gi[i].ci[j] && n++ == index) {
				to->handle = &part[gpu][i * mostCI + j];
				to->handle->index = index;
				return NVML_SUCCESS;
			}
	return NVML_ERROR_NOT_FOUND;
}
nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t d, unsigned *to) {
	unsigned gpu, gi, ci;
	*to = isPart(d, &gpu, &gi, &ci);
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t d, nvmlDevice_t *to) {
	unsigned gpu, gi, ci;
	if (!isPart(d, &gpu, &gi, &ci)) return NVML_ERROR_INVALID_ARGUMENT;
	to->handle = &of[gpu];
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t d, unsigned *to) {
	unsigned gpu, gi, ci;
	if (!isPart(d, &gpu, &gi, &ci)) return NVML_ERROR_INVALID_ARGUMENT;
	load();
	*to = cards[gpu].gi[gi].id;
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t d, unsigned *to) {
	unsigned gpu, gi, ci;
	if (!isPart(d, &gpu, &gi, &ci)) return NVML_ERROR_INVALID_ARGUMENT;
	*to = ci;
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t d, nvmlDeviceAttributes_t *to) {
	unsigned gpu, gi, ci;
	if (!isPart(d, &gpu, &gi, &ci)) return NVML_ERROR_NOT_SUPPORTED;
	load();
	struct gi *one = &cards[gpu].gi[gi];
	memset(to, 0, sizeof *to);
	to->multiprocessorCount = 14 * one->ci[ci], to->gpuInstanceSliceCount = profiles[one->kind].slices, to->computeInstanceSliceCount = one->ci[ci];
	to->memorySizeMB = profiles[one->kind].memory, to->sharedCopyEngineCount = profiles[one->kind].slices;
	return NVML_SUCCESS;
}
// nameOf is the UUID of an instance, in a place that the next call writes to.
static const char *nameOf(unsigned gpu, unsigned gi, unsigned ci) {
	static char name[96];
	load();
	snprintf(name, sizeof name, "MIG-%08x-5555-5666-8777-%08x%04x", 0x11111111u + gpu, cards[gpu].gi[gi].id, ci);
	return name;
}
static nvmlReturn_t partByUUID(const char *uuid, nvmlDevice_t *to) {
	for (unsigned gpu = 0; gpu < gpus; gpu++) {
		nvmlDevice_t d = {&of[gpu]};
		for (unsigned i = 0, a, b, c; nvmlDeviceGetMigDeviceHandleByIndex(d, i, to) == NVML_SUCCESS; i++)
			if (isPart(*to, &a, &b, &c) && !strcmp(uuid, nameOf(a, b, c))) return NVML_SUCCESS;
	}
	return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t d, unsigned *count, nvmlProcessInfo_t *to) {
	unsigned room = *count;
	FILE *f = fopen(beside("process", d.handle->index), "r");
	*count = 0;
	if (!f && !told("process")) return NVML_SUCCESS;
	unsigned pid = 4711;
	if (f && fscanf(f, "%u", &pid) != 1) pid = 1;
	if (f) fclose(f);
	*count = 1;
	if (!room || !to) return NVML_ERROR_INSUFFICIENT_SIZE;
	memset(to, 0, sizeof *to);
	to->pid = pid;
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t d, unsigned *count, nvmlProcessInfo_t *to) { *count = 0; return NVML_SUCCESS; }

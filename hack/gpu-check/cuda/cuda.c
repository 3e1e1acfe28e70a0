// A program for a container with one GPU: it says what CUDA sees, has a kernel compute a sum, and tries to open another GPU.
// It is built without CUDA's toolkit: it loads the driver's library, which compiles the kernel.
//
//	cuda-check [MAJOR:MINOR]    the number of the other GPU's device file
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

typedef int result;
typedef unsigned long long pointer;
enum { threads = 1024 };

// Each thread writes its number: the sum of 0 to 1023 is 523776.
static const char kernel[] =
	".version 6.0\n.target sm_50\n.address_size 64\n"
	".visible .entry numbers(.param .u64 to) {\n"
	"  .reg .u32 %r<2>;\n  .reg .u64 %rd<4>;\n"
	"  ld.param.u64 %rd1, [to];\n  cvta.to.global.u64 %rd1, %rd1;\n"
	"  mov.u32 %r1, %tid.x;\n  mul.wide.u32 %rd2, %r1, 4;\n  add.s64 %rd3, %rd1, %rd2;\n"
	"  st.global.u32 [%rd3], %r1;\n  ret;\n}\n";

static void *library;

static void *function(const char *name) {
	void *f = dlsym(library, name);
	if (!f) {
		fprintf(stderr, "libcuda has no %s\n", name);
		exit(1);
	}
	return f;
}

static void must(const char *what, result r) {
	if (r == 0) return;
	fprintf(stderr, "%s: CUDA error %d\n", what, r);
	exit(1);
}

// other reports whether the device file of another GPU can be made and opened.
static const char *other(const char *number) {
	unsigned major, minor;
	if (sscanf(number, "%u:%u", &major, &minor) != 2) return "unknown";
	unlink("/tmp/other");
	int fd = -1;
	if (mknod("/tmp/other", S_IFCHR | 0666, makedev(major, minor)) == 0) fd = open("/tmp/other", O_RDWR);
	int why = errno;
	unlink("/tmp/other");
	if (fd >= 0) close(fd);
	return fd >= 0 ? "opened" : why == EPERM || why == EACCES ? "refused" : "unknown";
}

int main(int argc, char **argv) {
	if (argc > 1) printf("other %s\n", other(argv[1]));
	library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	int count = 0, device = 0, values[threads];
	unsigned char id[16];
	void *context, *module, *entry;
	pointer memory;
	must("cuInit", ((result (*)(unsigned))function("cuInit"))(0));
	must("cuDeviceGetCount", ((result (*)(int *))function("cuDeviceGetCount"))(&count));
	printf("count %d\n", count);
	must("cuDeviceGet", ((result (*)(int *, int))function("cuDeviceGet"))(&device, 0));
	must("cuDeviceGetUuid", ((result (*)(void *, int))function("cuDeviceGetUuid"))(id, device));
	printf("uuid GPU-");
	for (int i = 0; i < 16; i++) printf("%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", id[i]);
	printf("\n");
	must("cuDevicePrimaryCtxRetain", ((result (*)(void **, int))function("cuDevicePrimaryCtxRetain"))(&context, device));
	must("cuCtxSetCurrent", ((result (*)(void *))function("cuCtxSetCurrent"))(context));
	must("cuMemAlloc", ((result (*)(pointer *, size_t))function("cuMemAlloc_v2"))(&memory, sizeof values));
	must("cuModuleLoadData", ((result (*)(void **, const void *))function("cuModuleLoadData"))(&module, kernel));
	must("cuModuleGetFunction", ((result (*)(void **, void *, const char *))function("cuModuleGetFunction"))(&entry, module, "numbers"));
	void *parameters[] = {&memory};
	must("cuLaunchKernel", ((result (*)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **))function("cuLaunchKernel"))(
		entry, 1, 1, 1, threads, 1, 1, 0, NULL, parameters, NULL));
	must("cuMemcpyDtoH", ((result (*)(void *, pointer, size_t))function("cuMemcpyDtoH_v2"))(values, memory, sizeof values));
	long long sum = 0;
	for (int i = 0; i < threads; i++) sum += values[i];
	printf("sum %lld\n", sum);
	must("cuMemFree", ((result (*)(pointer))function("cuMemFree_v2"))(memory));
	return 0;
}

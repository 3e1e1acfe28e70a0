package agent

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// nextBoot checks whether NVIDIA's driver will be available after the machine's next start. An upgrade may have installed a kernel without a module
// of the driver. The methods can be called concurrently.
type nextBoot struct {
	// root is the folder with the machine's files. root is "" if the GPUs require no module, for example because the GPUs are simulated.
	root string

	mu     sync.Mutex
	kernel string
	ready  bool
	// other is the release of an installed module that doesn't match the driver.
	other string
	// releases caches the releases of modules by file. looking guards releases.
	releases map[string]string
	looking  sync.Mutex
}

// look returns the kernel of the machine's next start, or "" if the kernel is unknown. ready reports whether the driver's module exists for this
// kernel.
func (b *nextBoot) look() (kernel string, ready bool) {
	b.looking.Lock()
	defer b.looking.Unlock()
	other := ""
	if b.root != "" {
		if kernel = nextKernel(b.root); kernel != "" {
			ready, other = b.hasModule(kernel)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kernel, b.ready, b.other = kernel, ready, other
	return kernel, ready
}

func (b *nextBoot) last() (kernel string, ready bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kernel, b.ready
}

// nextKernel returns the newest bootable kernel, because boot loaders start this kernel by default.
func nextKernel(root string) string {
	entries, err := os.ReadDir(filepath.Join(root, "boot"))
	if err != nil {
		return ""
	}
	newest := ""
	for _, e := range entries {
		kernel, ok := strings.CutPrefix(e.Name(), "vmlinuz-")
		if !ok || leftKernel.MatchString(kernel) {
			continue
		}
		if newest == "" || compareKernels(kernel, newest) > 0 {
			newest = kernel
		}
	}
	return newest
}

// compareKernels compares kernel versions like GRUB. compareKernels compares numbers by value, and a prerelease comes before its release.
func compareKernels(a, b string) int {
	x, y := partsOf(a), partsOf(b)
	for i := range min(len(x), len(y)) {
		n, err := strconv.ParseUint(x[i], 10, 64)
		m, err2 := strconv.ParseUint(y[i], 10, 64)
		c := cmp.Compare(x[i], y[i])
		switch {
		case err == nil && err2 == nil:
			c = cmp.Compare(n, m)
		case x[i][0] == '~' || y[i][0] == '~':
			c = cmp.Compare(boolToInt(y[i][0] == '~'), boolToInt(x[i][0] == '~'))
			if c == 0 {
				c = cmp.Compare(x[i], y[i])
			}
		}
		if c != 0 {
			return c
		}
	}
	switch {
	case len(x) > len(y) && x[len(y)][0] == '~':
		return -1
	case len(y) > len(x) && y[len(x)][0] == '~':
		return 1
	}
	return cmp.Compare(len(x), len(y))
}

func partsOf(kernel string) []string {
	return kernelParts.FindAllString(beforeRelease.ReplaceAllString(kernel, "~$1"), -1)
}

func boolToInt(is bool) int {
	if is {
		return 1
	}
	return 0
}

var (
	// leftKernel matches the names of backup and rescue files next to kernels. GRUB ignores these files or uses them only for rescue.
	leftKernel = regexp.MustCompile(`(\.old|\.dpkg-[a-z]+|\.rpmsave|\.rpmnew|\.sig|~)$|rescue`)
	// beforeRelease matches the parts of a version that GRUB treats as a prerelease.
	beforeRelease = regexp.MustCompile(`[._-](pre|rc|test|git|old|trunk)`)
	kernelParts   = regexp.MustCompile(`~[a-z]+|[0-9]+|[^0-9.~-]+`)
	// moduleFile matches the names of the driver's main module in packages of NVIDIA and of distributions.
	moduleFile = regexp.MustCompile(`^nvidia(-current|-current-open|-tesla|-tesla-[0-9]+|-legacy-[0-9a-z]+)?\.ko(\.(gz|xz|zst))?$`)
)

// trouble explains why the driver would be missing after the machine's next start. trouble returns "" if the driver will be available, or if that is
// unknown.
func (b *nextBoot) trouble() string {
	kernel, ready := b.last()
	if kernel == "" || ready {
		return ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.other != "" {
		return fmt.Sprintf("the machine starts kernel %s next, for which NVIDIA's driver has only a module of %s, of an earlier driver: before it restarts, install linux-headers-%s and run dkms autoinstall",
			kernel, b.other, kernel)
	}
	return fmt.Sprintf("the machine starts kernel %s next, for which NVIDIA's driver has no module: before it restarts, install linux-headers-%s and run dkms autoinstall",
		kernel, kernel)
}

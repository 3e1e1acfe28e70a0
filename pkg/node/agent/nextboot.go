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

// nextBoot checks whether the machine will have NVIDIA's driver after its next start. An upgrade may have installed a kernel for which the driver has
// no module. The methods are safe for concurrent use.
type nextBoot struct {
	// root is the folder with the machine's files. It is "" if the GPUs need no module, for example because they are simulated.
	root string

	mu     sync.Mutex
	kernel string
	ready  bool
	// other is the release of a module that is installed, but that doesn't match the driver.
	other string
	// releases caches the releases of modules by file. looking guards it.
	releases map[string]string
	looking  sync.Mutex
}

// look returns the kernel of the machine's next start, or "" if that is unknown. ready reports whether the driver has a module for this kernel.
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

// last returns the result of the most recent call of look.
func (b *nextBoot) last() (kernel string, ready bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kernel, b.ready
}

// nextKernel returns the newest kernel that can be started, because boot loaders start it by default.
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

// compareKernels compares versions of kernels like GRUB: it compares numbers by value, and sorts prereleases before their release.
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
	// leftKernel matches the names of files that package managers and administrators leave next to kernels. GRUB ignores these files, or uses them
	// only for rescue.
	leftKernel = regexp.MustCompile(`(\.old|\.dpkg-[a-z]+|\.rpmsave|\.rpmnew|\.sig|~)$|rescue`)
	// beforeRelease matches the parts of a version that mark a prerelease for GRUB.
	beforeRelease = regexp.MustCompile(`[._-](pre|rc|test|git|old|trunk)`)
	kernelParts   = regexp.MustCompile(`~[a-z]+|[0-9]+|[^0-9.~-]+`)
	// moduleFile matches the names of the driver's main module in the packages of NVIDIA and the distributions.
	moduleFile = regexp.MustCompile(`^nvidia(-current|-current-open|-tesla|-tesla-[0-9]+|-legacy-[0-9a-z]+)?\.ko(\.(gz|xz|zst))?$`)
)

// trouble explains why the machine would have no driver after its next start. It returns "" if the machine will have a driver, or if that is unknown.
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

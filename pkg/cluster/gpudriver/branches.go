package gpudriver

import (
	"strconv"
	"strings"
)

// Branch is a series of driver releases whose versions begin with the same number.
type Branch struct {
	Number int
	// Closed is the range of GPU generations that the closed-source kernel module supports. Open is the range that the open module supports. The zero
	// value means that the branch doesn't contain the module.
	Closed, Open Serves
	// CUDA is the newest CUDA release that the driver supports.
	CUDA string
}

// Serves is a range of GPU generations, from the oldest to the newest.
type Serves struct{ From, To Generation }

func (s Serves) has(gs []Generation) bool {
	for _, g := range gs {
		if s.From == 0 || g < s.From || g > s.To {
			return false
		}
	}
	return true
}

// openByDefault is the first branch for which NVIDIA recommends the open module. The source is NVIDIA's announcement that release 560 and later
// install the open module by default.
const openByDefault = 560

// Branches returns NVIDIA's production and long-term branches for data centers, the newest first. The sources are
// docs.nvidia.com/datacenter/tesla/drivers, "CUDA Toolkit, Driver, and Architecture Matrix" and "Supported Drivers and CUDA Toolkit Versions". The
// open module needs the GSP, which exists since Turing, according to the README of NVIDIA/open-gpu-kernel-modules. Branch 580 is the last for
// Maxwell, Pascal and Volta, according to the deprecation schedule of NVIDIA's Unix drivers.
func Branches() []Branch {
	return []Branch{
		{Number: 590, Closed: Serves{Turing, Hopper}, Open: Serves{Turing, Blackwell}, CUDA: "13.1"},
		{Number: 580, Closed: Serves{Maxwell, Hopper}, Open: Serves{Turing, Blackwell}, CUDA: "13.0"},
		{Number: 570, Closed: Serves{Maxwell, Hopper}, Open: Serves{Turing, Blackwell}, CUDA: "12.8"},
		{Number: 550, Closed: Serves{Maxwell, Hopper}, Open: Serves{Turing, Hopper}, CUDA: "12.4"},
		{Number: 535, Closed: Serves{Maxwell, Hopper}, Open: Serves{Turing, Hopper}, CUDA: "12.2"},
		{Number: 470, Closed: Serves{Kepler, Ampere}, CUDA: "11.4"},
	}
}

// Oldest is the oldest acceptable branch if the operator sets no version. Containers get the driver's files by CDI, and NVIDIA's toolkit needs this
// branch to generate the CDI specification.
const Oldest = 470

// BranchOf returns the number before the first dot of a version, or 0 if the version doesn't begin with a number.
func BranchOf(version string) int {
	head, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(head)
	if err != nil {
		return 0
	}
	return n
}

// Release returns NVIDIA's part of a package's version, such as "535.261.03" for "1:535.261.03-1~deb12u1".
func Release(version string) string {
	if _, rest, ok := strings.Cut(version, ":"); ok {
		version = rest
	}
	release, _, _ := strings.Cut(version, "-")
	return release
}

// within reports whether a release is the desired release or belongs to the desired branch. If the second argument is empty, it returns true.
func within(release, want string) bool {
	return want == "" || release == want || strings.HasPrefix(release, want+".")
}

// Older reports whether release a is older than release b. It compares the releases number by number.
func Older(a, b string) bool {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(as), len(bs)) {
		x, errX := strconv.Atoi(as[i])
		y, errY := strconv.Atoi(bs[i])
		if errX != nil || errY != nil {
			return false
		}
		if x != y {
			return x < y
		}
	}
	return len(as) < len(bs)
}

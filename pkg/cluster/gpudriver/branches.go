package gpudriver

import (
	"strconv"
	"strings"
)

// Branch is a series of driver releases whose version begins with the same number.
type Branch struct {
	Number int
	// Closed is the range of generations that the closed kernel module supports, whose source isn't published. Open is the range that the open module
	// supports. The zero value means that the branch has no such module.
	Closed, Open Serves
	// CUDA is the newest CUDA release whose programs can run with the driver.
	CUDA string
}

// Serves is a range of generations, from the oldest to the newest.
type Serves struct{ From, To Generation }

// has reports whether all generations are in the range.
func (s Serves) has(gs []Generation) bool {
	for _, g := range gs {
		if s.From == 0 || g < s.From || g > s.To {
			return false
		}
	}
	return true
}

// openByDefault is the first branch for which NVIDIA recommends the open module if the module supports the GPUs. The source is NVIDIA's announcement
// that open modules are installed by default from release 560 on.
const openByDefault = 560

// Branches returns the known branches, the newest first. They are NVIDIA's production and long-term branches for data centers. The sources are
// docs.nvidia.com/datacenter/tesla/drivers, "CUDA Toolkit, Driver, and Architecture Matrix" and "Supported Drivers and CUDA Toolkit Versions". The
// open module needs the GSP, which GPUs have since Turing; the source for this is the README of NVIDIA/open-gpu-kernel-modules. The source for the
// end of Maxwell, Pascal and Volta after 580 is the deprecation schedule of NVIDIA's Unix drivers.
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

// Oldest is the oldest branch that is new enough if the operator sets no version: containers get the driver's files by CDI, and the toolkit generates
// the CDI specification from the driver.
const Oldest = 470

// BranchOf returns the number before the first dot of a version, or 0 if there is no number.
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

// within reports whether a release is the wanted release, or belongs to the wanted branch. If want is empty, it returns true for any release.
func within(release, want string) bool {
	return want == "" || release == want || strings.HasPrefix(release, want+".")
}

// Older reports whether release a is older than release b. It compares them number by number.
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

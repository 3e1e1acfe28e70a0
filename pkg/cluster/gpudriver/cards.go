// Package gpudriver chooses an NVIDIA driver and its packages for a machine, or returns the reason why no driver is possible.
// In: the machine's properties and state, and the operator's choices. Out: a plan, and findings. The package sends no requests and changes no
// machine.
package gpudriver

import "strconv"

// Generation is a generation of NVIDIA's GPUs. Generations are in the order of their release.
type Generation int

// The generations that a branch in Branches may support. The zero value is not a generation.
const (
	Kepler Generation = iota + 1
	Maxwell
	Pascal
	Volta
	Turing
	Ampere
	Ada
	Hopper
	Blackwell
)

func (g Generation) String() string {
	names := []string{"unknown", "Kepler", "Maxwell", "Pascal", "Volta", "Turing", "Ampere", "Ada", "Hopper", "Blackwell"}
	if g < 0 || int(g) >= len(names) {
		return names[0]
	}
	return names[g]
}

// chips returns ranges of PCI device ids with their generation. NVIDIA assigns ids by chip, so all cards with the same chip are in the same range.
// The source is the chips' names (GK110, GA100 …) in the public PCI ID repository, pci-ids.ucw.cz.
func chips() []struct {
	first, last uint64
	generation  Generation
} {
	return []struct {
		first, last uint64
		generation  Generation
	}{
		{0x0fc0, 0x0fff, Kepler},    // GK107
		{0x1000, 0x103f, Kepler},    // GK110, GK210
		{0x1180, 0x11ff, Kepler},    // GK104, GK106
		{0x1280, 0x12bf, Kepler},    // GK208
		{0x1340, 0x13ff, Maxwell},   // GM108, GM107, GM204
		{0x1400, 0x143f, Maxwell},   // GM206
		{0x1617, 0x1667, Maxwell},   // GM204 in notebooks
		{0x17c0, 0x17ff, Maxwell},   // GM200
		{0x15f0, 0x15ff, Pascal},    // GP100
		{0x1b00, 0x1d7f, Pascal},    // GP102, GP104, GP106, GP107, GP108
		{0x1d80, 0x1dff, Volta},     // GV100
		{0x1e00, 0x1fff, Turing},    // TU102, TU104, TU106, TU117
		{0x2180, 0x21ff, Turing},    // TU116
		{0x2080, 0x20ff, Ampere},    // GA100
		{0x2200, 0x25ff, Ampere},    // GA102, GA103, GA104, GA106, GA107; except for the range below
		{0x2680, 0x28ff, Ada},       // AD102, AD103, AD104, AD106, AD107
		{0x2900, 0x2fff, Blackwell}, // GB100, GB202, GB203, GB205, GB206, GB207
		{0x3180, 0x31ff, Blackwell}, // GB110
	}
}

// hopperFirst and hopperLast are the first and last device id of Hopper. Hopper's range is inside Ampere's range.
const hopperFirst, hopperLast = 0x2300, 0x237f // GH100

// GenerationOf returns the generation of the GPU with a PCI device id of four hex digits. It returns false for an unknown id.
func GenerationOf(device string) (Generation, bool) {
	id, err := strconv.ParseUint(device, 16, 16)
	if err != nil {
		return 0, false
	}
	if id >= hopperFirst && id <= hopperLast {
		return Hopper, true
	}
	for _, c := range chips() {
		if id >= c.first && id <= c.last {
			return c.generation, true
		}
	}
	return 0, false
}

package layout

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Profile is a kind of MIG instance into which a GPU can be split.
type Profile struct {
	// Name is NVIDIA's name of the profile, such as 1g.10gb. Name contains the number of processor slices and the memory in GiB.
	Name string
	// Instances is the maximum number of instances of the profile on one GPU.
	Instances int
}

type migCard struct {
	// words must all occur in the name of a model that matches the card.
	words []string
	// without lists words that must not occur in the name of a model that matches the card.
	without  []string
	profiles []Profile
}

// migCards returns NVIDIA's GPUs that can be split into instances. Profiles with media engines or graphics (+me, +gfx) are left out, because a GPU
// supports only one such instance. paictl uses the same profile for all instances of a GPU. GB200 is left out, because NVIDIA's manual and its tool
// name its profiles differently.
//
// Sources: the MIG User Guide, "Supported MIG Profiles" (docs.nvidia.com/datacenter/tesla/mig-user-guide). Details that the guide leaves open come
// from deployments/systemd/config-default.yaml of github.com/NVIDIA/mig-parted, which names cards by their PCI device ids.
func migCards() []migCard {
	// seven returns the profiles of a GPU with seven processor slices and eight memory slices. The arguments are the memory sizes of the instances.
	seven := func(eighth, quarter, half, all string) []Profile {
		return []Profile{
			{"1g." + eighth, 7}, {"1g." + quarter, 4}, {"2g." + quarter, 3}, {"3g." + half, 2}, {"4g." + half, 1}, {"7g." + all, 1},
		}
	}
	a100small, h80 := seven("5gb", "10gb", "20gb", "40gb"), seven("10gb", "20gb", "40gb", "80gb")
	h94, h96 := seven("12gb", "24gb", "47gb", "94gb"), seven("12gb", "24gb", "48gb", "96gb")
	h141, h144 := seven("18gb", "35gb", "71gb", "141gb"), seven("18gb", "36gb", "72gb", "144gb")
	hopper := []string{"94GB", "96GB", "64GB", "NVL"}
	return []migCard{
		{words: []string{"A30"}, profiles: []Profile{{"1g.6gb", 4}, {"2g.12gb", 2}, {"4g.24gb", 1}}},
		{words: []string{"A100"}, without: []string{"80GB"}, profiles: a100small},
		{words: []string{"A100"}, without: []string{"40GB"}, profiles: h80},
		{words: []string{"A800"}, without: []string{"80GB"}, profiles: a100small},
		{words: []string{"A800"}, without: []string{"40GB"}, profiles: h80},
		{words: []string{"H100"}, without: hopper, profiles: h80},
		{words: []string{"H800"}, without: hopper, profiles: h80},
		{words: []string{"H100"}, without: []string{"80GB", "PCIE", "96GB", "64GB"}, profiles: h94}, // NVL, and SXM5 with 94 GB
		{words: []string{"H800"}, without: []string{"80GB", "PCIE", "96GB", "64GB"}, profiles: h94},
		{words: []string{"H100"}, without: []string{"80GB", "PCIE", "94GB", "64GB", "NVL"}, profiles: h96},
		{words: []string{"H20"}, profiles: h96},
		{words: []string{"GH200"}, without: []string{"144G", "144GB"}, profiles: h96}, // this name contains the size of the processor's memory, 480 GB
		{words: []string{"GH200"}, without: []string{"480GB", "120GB"}, profiles: h144},
		{words: []string{"H200"}, profiles: h141},
		{words: []string{"B200"}, profiles: seven("23gb", "45gb", "90gb", "180gb")},
	}
}

// migCardsOf returns the cards that match a model. Several cards match if the model doesn't contain the memory size.
func migCardsOf(model string) (out []migCard) {
	words := strings.FieldsFunc(strings.ToUpper(model), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	has := func(w string) bool { return slices.Contains(words, w) }
	for _, c := range migCards() {
		if !slices.ContainsFunc(c.words, func(w string) bool { return !has(w) }) && !slices.ContainsFunc(c.without, has) {
			out = append(out, c)
		}
	}
	return out
}

// MIGProfiles returns the names of the profiles of all cards that match a model. The list is empty if the card is unknown or can't be split.
func MIGProfiles(model string) (out []string) {
	for _, c := range migCardsOf(model) {
		for _, p := range c.profiles {
			if !slices.Contains(out, p.Name) {
				out = append(out, p.Name)
			}
		}
	}
	return out
}

// MIGInstances returns the number of instances if a GPU is split with the profile. The error explains why the GPU can't be split. The error contains
// no remedy, because the caller adds a remedy.
func MIGInstances(model, profile string) (int, error) {
	cards := migCardsOf(model)
	if len(cards) == 0 {
		return 0, fmt.Errorf("paictl can't split a %s (MIG)", model)
	}
	counts := map[int]bool{}
	n := 0
	for _, c := range cards {
		if i := slices.IndexFunc(c.profiles, func(p Profile) bool { return p.Name == profile }); i >= 0 {
			n = c.profiles[i].Instances
			counts[n] = true
		}
	}
	switch {
	case len(counts) == 0:
		return 0, fmt.Errorf("%s has no profile %q", model, profile)
	case len(counts) > 1:
		return 0, fmt.Errorf("cards named %s exist with different memory sizes, with room for different numbers of %s: write the model with its memory, as nvidia-smi -L does", model, profile)
	}
	return n, nil
}

package rules

import (
	"reflect"

	"github.com/openpai/paictl/pkg/runtime/rules"
)

// ruleChange describes how one rule differs between two sets.
type ruleChange struct {
	Action string `json:"action"` // added, removed, changed, moved
	Code   int    `json:"code"`
	Phrase string `json:"phrase"`
}

// changes returns the rules that differ between two sets: first the rules of after that were added, changed or moved, in their order, then the
// removed rules.
func changes(before, after *rules.Set) []ruleChange {
	had := index(before)
	has := index(after)
	moved := outOfOrder(after, had)
	var out []ruleChange
	for _, r := range after.Rules {
		i, ok := had[r.Code]
		switch {
		case !ok:
			out = append(out, ruleChange{"added", r.Code, r.Phrase})
		case !reflect.DeepEqual(before.Rules[i], r):
			out = append(out, ruleChange{"changed", r.Code, r.Phrase})
		case moved[r.Code]:
			out = append(out, ruleChange{"moved", r.Code, r.Phrase})
		}
	}
	for _, r := range before.Rules {
		if _, ok := has[r.Code]; !ok {
			out = append(out, ruleChange{"removed", r.Code, r.Phrase})
		}
	}
	return out
}

func index(s *rules.Set) map[int]int {
	out := make(map[int]int, len(s.Rules))
	for i, r := range s.Rules {
		out[r.Code] = i
	}
	return out
}

// outOfOrder returns the codes of the rules that moved. These are the rules outside the longest subsequence that is still in the original order.
func outOfOrder(after *rules.Set, had map[int]int) map[int]bool {
	var codes, at []int
	for _, r := range after.Rules {
		if i, ok := had[r.Code]; ok {
			codes, at = append(codes, r.Code), append(at, i)
		}
	}
	// Comparing all pairs is fast enough, because sets are small.
	length, previous := make([]int, len(at)), make([]int, len(at))
	best := -1
	for i := range at {
		length[i], previous[i] = 1, -1
		for j := range i {
			if at[j] < at[i] && length[j]+1 > length[i] {
				length[i], previous[i] = length[j]+1, j
			}
		}
		if best < 0 || length[i] > length[best] {
			best = i
		}
	}
	moved := make(map[int]bool, len(codes))
	for _, c := range codes {
		moved[c] = true
	}
	for i := best; i >= 0; i = previous[i] {
		delete(moved, codes[i])
	}
	return moved
}

package v1

import (
	"slices"
	"strings"
)

// AnnotationTags lists words that people give a job to find it by, sorted and separated by commas.
const AnnotationTags = "paictl.openpai.org/tags"

// Limits of tags.
const (
	MaxTag  = 512 // bytes of one
	MaxTags = 100 // of one job
)

// ReadTags reads the annotation; nil if it has no tags. Anyone may have written it, so it leaves out invalid tags and those beyond
// MaxTags.
func ReadTags(text string) []string {
	var out []string
	for tag := range strings.SplitSeq(text, ",") {
		if tag != "" && len(tag) <= MaxTag {
			out = append(out, tag)
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:min(len(out), MaxTags)]
}

// WriteTags returns the value of the annotation. None of the tags may have a comma.
func WriteTags(tags []string) string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(tags))), ",")
}

// ValidTag reports whether a text can be a tag: not empty, no comma, at most MaxTag bytes.
func ValidTag(tag string) bool {
	return tag != "" && len(tag) <= MaxTag && !strings.Contains(tag, ",")
}

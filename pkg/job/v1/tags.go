package v1

import (
	"slices"
	"strings"
)

// AnnotationTags lists the tags of a job. Users can find the job by its tags. The tags are sorted and separated by commas.
const AnnotationTags = "paictl.openpai.org/tags"

// Limits of tags.
const (
	MaxTag  = 512 // bytes of one
	MaxTags = 100 // of one job
)

// ReadTags parses the annotation. It returns nil if there are no tags. It leaves out invalid tags and tags beyond MaxTags, because any user may
// have written the annotation.
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

// WriteTags returns the value of the annotation for tags. The tags must not contain commas.
func WriteTags(tags []string) string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(tags))), ",")
}

// ValidTag reports whether a text can be a tag: it isn't empty, contains no comma, and has at most MaxTag bytes.
func ValidTag(tag string) bool {
	return tag != "" && len(tag) <= MaxTag && !strings.Contains(tag, ",")
}

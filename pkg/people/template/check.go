package template

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job/protocol"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// Templates are limited because each server keeps all templates in memory.
const (
	maxName        = 100 // characters
	maxSummary     = 1024
	maxDescription = 64 << 10 // bytes
	maxWords       = 20       // tags, and categories
	maxWord        = 50       // bytes
	maxGroups      = 50
	maxOfAuthor    = 100     // templates
	maxAuthorBytes = 2 << 20 // of an author's templates
	maxBytes       = 32 << 20
)

// ready checks and normalizes the author's fields, and masks secrets in the job file.
func ready(spec *v1.TemplateSpec) error {
	if spec.Type == "" {
		spec.Type = "template"
	}
	if err := checkTexts(spec); err != nil {
		return err
	}
	for _, list := range []*[]string{&spec.Groups, &spec.Categories, &spec.Tags} {
		*list = slices.Compact(slices.Sorted(slices.Values(*list)))
	}
	job, err := shareable(spec.Job)
	spec.Job = job
	return err
}

func checkTexts(spec *v1.TemplateSpec) error {
	switch {
	case !ValidName(spec.Name):
		return invalid("name: %q can't be the name of a template: write 1 to %d letters, digits, spaces and . _ - + ( ) , : & on one line", shown(spec.Name), maxName)
	case !v1.ValidName(spec.Author):
		return invalid("author: %q can't be a name", shown(spec.Author))
	case !slices.Contains([]string{"template", "data", "old"}, spec.Type):
		return invalid("type: write template, data or old")
	case !oneLine(spec.Summary, maxSummary):
		return invalid("summary: write one line of %d bytes at most", maxSummary)
	case len(spec.Description) > maxDescription:
		return invalid("description: it may have %d KiB", maxDescription>>10)
	case !oneLine(spec.DataType, 256), !oneLine(spec.DataURL, 2048):
		return invalid("dataType and dataUrl: write one line each, of 256 and 2048 bytes at most")
	case len(spec.Groups) > maxGroups:
		return invalid("groups: there may be %d", maxGroups)
	case spec.Public && len(spec.Groups) > 0:
		return invalid("a template is for everyone or for groups, not both")
	case len(spec.Tags) > maxWords, len(spec.Categories) > maxWords:
		return invalid("tags and categories: there may be %d of each", maxWords)
	}
	for _, word := range slices.Concat(spec.Tags, spec.Categories) {
		// Queries contain several tags or categories, separated by commas. So a tag or category can't contain a comma.
		if word == "" || !oneLine(word, maxWord) || strings.Contains(word, ",") || strings.TrimSpace(word) != word {
			return invalid("tags and categories: %q can't be one: write up to %d bytes on one line, without commas", shown(word), maxWord)
		}
	}
	return nil
}

// ValidName reports whether a text can be the name of a template. The name can't contain a slash, because commands use USER/NAME. It also can't
// contain characters that are special to a terminal.
func ValidName(name string) bool {
	if name == "" || utf8.RuneCountInString(name) > maxName || !utf8.ValidString(name) || strings.TrimSpace(name) != name || strings.Trim(name, ".") == "" {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) && !strings.ContainsRune(" ._-+(),:&", r)
	})
}

func oneLine(text string, most int) bool {
	return len(text) <= most && !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) })
}

// shown shortens a text for error messages.
func shown(text string) string {
	if len(text) > maxName {
		return strings.ToValidUTF8(text[:maxName], "") + "…"
	}
	return text
}

// shareable returns a job file with masked secrets. It returns a job file without secrets unchanged, including its comments.
func shareable(job string) (string, error) {
	parsed, found := protocol.ParseMasked("job.yaml", []byte(job))
	if err := found.Err(); err != nil {
		return job, err
	}
	masked, err := parsed.Masked()
	if err != nil {
		return job, err
	}
	plain, err := parsed.Fingerprint()
	if err != nil {
		return job, err
	}
	if sum := sha256.Sum256(masked); hex.EncodeToString(sum[:]) == plain {
		return job, nil
	}
	return string(masked), nil
}

// Masked reports whether a job file contains masked secrets. Such a job file can't be submitted unchanged.
func Masked(job string) bool { return strings.Contains(job, protocol.Masked) }

// fits returns the reason why a template can't be stored, or nil. was is the template to replace, or nil. Two simultaneous writes may exceed a limit
// by one template, and the limits allow for this.
func (s *Store) fits(was *v1.Template, spec *v1.TemplateSpec) error {
	count, own, all := 0, size(spec), size(spec)
	for _, t := range s.objects.All() {
		if was != nil && t.UID == was.UID {
			continue
		}
		all += size(&t.Spec)
		if t.Spec.Author != spec.Author {
			continue
		}
		count++
		own += size(&t.Spec)
		if t.Spec.Name == spec.Name {
			return taken()
		}
	}
	switch {
	case was == nil && count >= maxOfAuthor, own > maxAuthorBytes:
		return hint.Errorf("remove some: paictl job template remove NAME", "%w: %s may have %d, of %d MiB together", ErrFull, spec.Author, maxOfAuthor, maxAuthorBytes>>20)
	case all > maxBytes:
		return hint.Errorf("remove some: paictl job template remove NAME", "%w: those of all people may have %d MiB together", ErrFull, maxBytes>>20)
	}
	return nil
}

func size(s *v1.TemplateSpec) int {
	n := len(s.Job) + len(s.Description) + len(s.Summary) + len(s.DataType) + len(s.DataURL) + 1024
	for _, word := range slices.Concat(s.Groups, s.Categories, s.Tags) {
		n += len(word) + 16
	}
	return n
}

// Size returns the approximate memory of a template, in bytes. all is for the whole template. texts is for the job file and the description.
func Size(s *v1.TemplateSpec) (all, texts int) { return size(s), len(s.Job) + len(s.Description) }

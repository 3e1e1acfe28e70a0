package fetch

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/bundle/download"
	"github.com/openpai/paictl/pkg/hint"
)

// published returns the SHA-256 of fileURL that upstream publishes at sumsURL.
func (f *fetcher) published(ctx context.Context, sumsURL, fileURL string) (string, error) {
	text, err := f.d.Text(ctx, sumsURL)
	if err != nil {
		return "", hint.Wrap(fmt.Errorf("get the published checksum: %w", err), remedy(err, path.Base(sumsURL)))
	}
	sum, ok := findSum(string(text), path.Base(fileURL))
	if !ok {
		return "", hint.Errorf("look at what "+sumsURL+" answers; a proxy may have answered instead of the project",
			"%s has no SHA-256 of %s", sumsURL, path.Base(fileURL))
	}
	return sum, nil
}

func remedy(err error, file string) string {
	if s, ok := errors.AsType[*download.StatusError](err); ok && s.Lasting() {
		return "paictl uses no file without its published checksum; a mirror must have " + file + " too"
	}
	return "check this machine's internet access, or name a mirror: --mirror URL; or build from source: paictl bundle build"
}

// findSum finds a file's checksum in text. The text is a single checksum, or a list with a line "sum  name" or "sum *name".
func findSum(text, file string) (string, bool) {
	fields := strings.Fields(text)
	if len(fields) == 1 && isSum(fields[0]) {
		return fields[0], true
	}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 2 && isSum(f[0]) && path.Base(strings.TrimPrefix(f[1], "*")) == file {
			return f[0], true
		}
	}
	return "", false
}

func isSum(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

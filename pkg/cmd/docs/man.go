package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/version"
)

// writeMan writes the man pages of a command and its subcommands. It returns the number of pages.
func writeMan(root *cobra.Command, dir string, getenv func(string) string) (int, error) {
	when, err := date(getenv("SOURCE_DATE_EPOCH"), version.Get().Date)
	if err != nil {
		return 0, err
	}
	plain(root)
	header := &doc.GenManHeader{Section: "1", Source: "paictl " + version.Version, Manual: "paictl", Date: &when}
	if err := doc.GenManTreeFromOpts(root, doc.GenManTreeOptions{Header: header, Path: dir, CommandSeparator: "-"}); err != nil {
		return 0, fmt.Errorf("write man pages: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(dir, root.Name()+"*.1"))
	return len(files), err
}

// plain prepares the texts of a command and its subcommands for the library, which parses the texts as Markdown. Markdown keeps indentation only
// from four spaces, and removes text that looks like a tag.
func plain(c *cobra.Command) {
	lines := strings.Split(c.Long, "\n")
	before := "" // the previous line, unchanged
	for i, line := range lines {
		switch {
		case !strings.HasPrefix(line, "  "):
			lines[i] = strings.ReplaceAll(line, "<", `\<`)
		case before != "" && !strings.HasPrefix(before, "  "):
			lines[i] = "\n  " + line
		default:
			lines[i] = "  " + line
		}
		before = line
	}
	c.Long = strings.Join(lines, "\n")
	for _, sub := range c.Commands() {
		plain(sub)
	}
}

// date returns the date on the pages. The date depends only on the source, so that builds are reproducible.
func date(epoch, commit string) (time.Time, error) {
	if epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return time.Time{}, cmdutil.Usagef("SOURCE_DATE_EPOCH is %q: write seconds since 1970, or unset it", epoch)
		}
		return time.Unix(seconds, 0).UTC(), nil
	}
	if when, err := time.Parse(time.RFC3339, commit); err == nil {
		return when, nil
	}
	if info, err := os.Executable(); err == nil { // built without a repository
		if stat, err := os.Stat(info); err == nil {
			return stat.ModTime().UTC(), nil
		}
	}
	return time.Time{}, nil
}

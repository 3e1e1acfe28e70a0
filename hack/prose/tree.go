package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A reader returns the passages of a file.
type reader func(name string, text []byte) ([]passage, error)

// readerOf returns the reader for a file, or nil if the check skips the file.
func readerOf(name string) reader {
	folders := strings.Split(path.Dir(name), "/")
	base := path.Base(name)
	switch {
	case slices.Contains(folders, "testdata"), slices.Contains(folders, "vendor"), strings.HasPrefix(base, "zz_generated"):
		return nil
	case strings.HasPrefix(name, "docs/commands/"), name == "docs/rest-api.md":
		return nil // their source is help and routes in Go
	case strings.HasSuffix(base, ".zh.md"):
		return nil // the rules are for English
	case strings.HasSuffix(base, ".go"):
		return readGo
	case strings.HasSuffix(base, ".md"):
		return readMarkdown
	case strings.HasSuffix(base, ".sh"):
		return readShell
	case strings.HasPrefix(name, "templates/charts/") && base == "values.yaml":
		return readValues
	case strings.HasPrefix(name, "templates/charts/") && base == "values.schema.json":
		return readSchema
	}
	return nil
}

// list returns the names of all files in the repository that git doesn't ignore.
func list(ctx context.Context, root string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "git", "ls-files", "-co", "-z", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the files of %s: %w", root, err)
	}
	var names []string
	for name := range bytes.SplitSeq(bytes.TrimRight(out, "\x00"), []byte{0}) {
		names = append(names, string(name))
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// read returns the sentences of a file. A file that is in the index but was deleted has no sentences.
func read(root, name string) ([]sentence, error) {
	reader := readerOf(name)
	if reader == nil {
		return nil, nil
	}
	text, err := os.ReadFile(filepath.Join(root, name))
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	passages, err := reader(name, text)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	var out []sentence
	for i := range passages {
		out = append(out, passages[i].sentences(name)...)
	}
	return out, nil
}

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// fingerprint returns the entry of a finding in the baseline. It doesn't depend on the file and the line, so moving a sentence changes nothing.
func (f finding) fingerprint() string {
	sum := sha256.Sum256([]byte(f.rule + "\n" + f.text))
	return hex.EncodeToString(sum[:])[:10]
}

// readBaseline returns the fingerprints of the known findings, or nil if the baseline doesn't exist. The fingerprints are sorted, and each
// occurrence of a finding has one.
func readBaseline(name string) ([]string, error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return strings.Fields(string(text)), err
}

func writeBaseline(name string, entries []string) error {
	slices.Sort(entries)
	text := strings.Join(entries, "\n")
	if text != "" {
		text += "\n"
	}
	return os.WriteFile(name, []byte(text), 0o644)
}

// createBaseline writes the first baseline. It doesn't replace an existing baseline, because a baseline must only shrink.
func createBaseline(name string, found []finding) error {
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s exists", name)
	}
	var entries []string
	for _, f := range found {
		entries = append(entries, f.fingerprint())
	}
	return writeBaseline(name, entries)
}

// divide returns the findings that aren't in the baseline as added, the entries of the baseline that were found as known, and the other entries as
// gone. Two occurrences of the same sentence need two entries.
func divide(baseline []string, found []finding) (added []finding, known, gone []string) {
	left := map[string]int{}
	for _, entry := range baseline {
		left[entry]++
	}
	for _, f := range found {
		entry := f.fingerprint()
		if left[entry] == 0 {
			added = append(added, f)
			continue
		}
		left[entry]--
		known = append(known, entry)
	}
	for _, entry := range baseline {
		if left[entry] > 0 {
			left[entry]--
			gone = append(gone, entry)
		}
	}
	return added, known, gone
}

// compare prints the differences between findings and the baseline. If update is set, it first removes the entries that weren't found. It never adds
// an entry.
func compare(name string, found []finding, update bool, out io.Writer) error {
	baseline, err := readBaseline(name)
	if err != nil {
		return err
	}
	added, known, gone := divide(baseline, found)
	if update && len(gone) > 0 {
		if err := writeBaseline(name, slices.Clone(known)); err != nil {
			return err
		}
		gone = nil
	}
	for _, f := range added {
		fmt.Fprintln(out, f)
	}
	if len(gone) > 0 {
		fmt.Fprintf(out, "%s: %s entries are no longer found: run go run ./hack/prose -update, and commit the file\n", baselineFile, thousands(len(gone)))
	}
	fmt.Fprintf(out, "prose: %s new, %s known (%s at the baseline)\n", thousands(len(added)), thousands(len(known)), thousands(len(baseline)))
	if len(added)+len(gone) > 0 {
		return errFindings
	}
	return nil
}

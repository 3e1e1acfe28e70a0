package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// quarantineFile lists unreliable tests. They run, and their failures are printed, but don't fail a tier.
const quarantineFile = "test/quarantine.txt"

// The quarantine holds only a few tests at a time, each for at most a week: by then the test is repaired or deleted.
const (
	maxQuarantined = 5
	maxDays        = 7
)

// quarantined is a line of the file.
type quarantined struct {
	pkg, test, cause string
	since            time.Time
}

type quarantine []quarantined

// readQuarantine reads lines "PACKAGE TEST DATE CAUSE"; the package without the module's name. A missing file is empty.
func readQuarantine(file string) (quarantine, error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out quarantine
	n := 0
	for line := range strings.Lines(string(b)) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Fields(line)
		if len(f) < 4 {
			return nil, fmt.Errorf(`%s:%d: write "PACKAGE TEST YYYY-MM-DD CAUSE": %q`, file, n, line)
		}
		since, err := time.Parse(time.DateOnly, f[2])
		if err != nil {
			return nil, fmt.Errorf("%s:%d: the date must be YYYY-MM-DD: %q", file, n, f[2])
		}
		out = append(out, quarantined{f[0], f[1], strings.Join(f[3:], " "), since})
	}
	return out, nil
}

// holds reports whether a test, by the import path of its package, is quarantined.
func (q quarantine) holds(pkg, test string) bool {
	for _, e := range q {
		if module+"/"+e.pkg == pkg && e.test == test {
			return true
		}
	}
	return false
}

// check returns an error if there are too many entries, or an entry is older than a week at this time.
func (q quarantine) check(now time.Time) error {
	var errs []error
	if len(q) > maxQuarantined {
		errs = append(errs, fmt.Errorf("%s has %d tests, %d are allowed: repair some", quarantineFile, len(q), maxQuarantined))
	}
	for _, e := range q {
		days := int(now.UTC().Truncate(24*time.Hour).Sub(e.since).Hours() / 24)
		if days < -1 {
			errs = append(errs, fmt.Errorf("%s: the date of %s is in the future", quarantineFile, e.test))
		}
		if days > maxDays {
			errs = append(errs, fmt.Errorf("%s: %s of %s has been there for %d days, %d are allowed: repair or delete the test", quarantineFile, e.test, e.pkg, days, maxDays))
		}
	}
	return errors.Join(errs...)
}

// lost returns an error if a package below root doesn't have the test that is quarantined.
func (q quarantine) lost(root string) error {
	var errs []error
	for _, e := range q {
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(e.pkg), "*_test.go"))
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(files, func(file string) bool {
			b, _ := os.ReadFile(file)
			return strings.Contains(string(b), "\nfunc "+e.test+"(")
		}) {
			errs = append(errs, fmt.Errorf("%s: %s has no test %s: delete the line", quarantineFile, e.pkg, e.test))
		}
	}
	return errors.Join(errs...)
}

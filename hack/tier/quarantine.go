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

// quarantineFile is the file that lists unreliable tests. These tests still run, and their failures are printed, but the failures don't make a tier
// fail.
const quarantineFile = "test/quarantine.txt"

// The quarantine contains only a few tests at the same time. Each test stays for a week at most, until it is repaired or deleted.
const (
	maxQuarantined = 5
	maxDays        = 7
)

// quarantined is a line of the file, which describes one test.
type quarantined struct {
	pkg, test, cause string
	since            time.Time
}

type quarantine []quarantined

// readQuarantine reads lines of the form "PACKAGE TEST DATE CAUSE". PACKAGE doesn't contain the name of the module. If the file is missing, the
// quarantine is empty.
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

// holds reports whether a test is quarantined. pkg is the import path of the test's package.
func (q quarantine) holds(pkg, test string) bool {
	for _, e := range q {
		if module+"/"+e.pkg == pkg && e.test == test {
			return true
		}
	}
	return false
}

// check returns an error if there are too many entries, or if an entry is older than a week at the time now.
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

// lost returns an error if a quarantined test doesn't exist in its package below root.
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

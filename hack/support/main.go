// Command support fills the tables of docs/support.md from the reports that the tiers of tests write to the folder reports. It adds the newest
// results to results.json in the folder of this file, and then writes the tables. results.json also contains results of runs without a report. If a
// system has no result, the table shows that it wasn't tested.
//
//	go run ./hack/support [REPORT...]
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	resultsFile = "hack/support/results.json"
	pageFile    = "docs/support.md"
)

func main() { os.Exit(start()) }

func start() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, ".", os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "support:", err)
		return 1
	}
	return 0
}

// run reads the given reports, or all reports in the folder reports. It writes the results and the tables below root.
func run(ctx context.Context, root string, reports []string, stdout io.Writer) error {
	if len(reports) == 0 {
		var err error
		if reports, err = filepath.Glob(filepath.Join(root, "reports", "*.json")); err != nil {
			return err
		}
	}
	all, err := readResults(filepath.Join(root, resultsFile))
	if err != nil {
		return err
	}
	for _, file := range reports {
		r, err := readReport(file)
		if err == nil {
			err = r.usable(ctx, root)
		}
		var unusable unusableError
		if errors.As(err, &unusable) {
			fmt.Fprintf(stdout, "%s: left out: %v\n", file, err)
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		added := all.add(r.results())
		fmt.Fprintf(stdout, "%s: %s\n", file, orNothing(added))
	}
	if err := all.write(filepath.Join(root, resultsFile)); err != nil {
		return err
	}
	return fill(filepath.Join(root, pageFile), all)
}

func orNothing(rows []string) string {
	if len(rows) == 0 {
		return "nothing newer than what is known"
	}
	return strings.Join(rows, ", ")
}

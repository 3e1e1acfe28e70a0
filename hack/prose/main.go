// Command prose finds wording in comments, messages and documents that is hard to understand for readers of technical English.
// In: the files that git doesn't ignore, and baseline.txt with the findings that were known when the check was introduced.
// Out: a line for each new finding. The baseline only shrinks.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const usage = `Check that comments, messages and documents are in plain technical English.

Usage:
  go run ./hack/prose           report findings that aren't in the baseline, and entries that aren't found
  go run ./hack/prose -update   remove entries that aren't found from the baseline
  go run ./hack/prose -stats    count findings for each rule
  go run ./hack/prose -all FILE...
                                report all findings of files or folders, also those of the baseline

Run it in the root of the repository. The baseline is hack/prose/baseline.txt. To correct a finding, rewrite the
sentence. An edited sentence isn't in the baseline, so it must have no findings left.
`

// errFindings is the error if the check has found something. The findings have been printed by then.
var errFindings = errors.New("the check found something")

const baselineFile = "hack/prose/baseline.txt"

func main() {
	err := run(context.Background(), ".", os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, errFindings):
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(2)
	}
}

// options holds the arguments of the command.
type options struct {
	update, stats, all bool
	create             bool // only for the first baseline, so the usage doesn't have it
	files              []string
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("prose", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.BoolVar(&o.update, "update", false, "")
	flags.BoolVar(&o.stats, "stats", false, "")
	flags.BoolVar(&o.all, "all", false, "")
	flags.BoolVar(&o.create, "init", false, "")
	err := flags.Parse(args)
	o.files = flags.Args()
	if err == nil && o.all == (len(o.files) == 0) {
		err = errors.New("-all needs files, and only -all takes files")
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		err = fmt.Errorf("%w\n\n%s", err, usage)
	}
	return o, err
}

func run(ctx context.Context, root string, args []string, out io.Writer) error {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		_, err = fmt.Fprint(out, usage)
		return err
	}
	if err != nil {
		return err
	}
	rs, err := parseRules(rulesFile)
	if err != nil {
		return err
	}
	names, err := list(ctx, root)
	if err != nil {
		return err
	}
	if o.all {
		return reportAll(rs, root, names, o.files, out)
	}
	found, err := find(rs, root, names)
	if err != nil {
		return err
	}
	baseline := filepath.Join(root, baselineFile)
	switch {
	case o.stats:
		return reportStats(rs, found, out)
	case o.create:
		return createBaseline(baseline, found)
	}
	return compare(baseline, found, o.update, out)
}

// find returns the findings in the named files.
func find(rs rules, root string, names []string) ([]finding, error) {
	var out []finding
	for _, name := range names {
		sentences, err := read(root, name)
		if err != nil {
			return nil, err
		}
		for _, s := range sentences {
			out = append(out, rs.check(s)...)
		}
	}
	return out, nil
}

// reportAll prints all findings in the files that args names, or that are below a folder of args.
func reportAll(rs rules, root string, names, args []string, out io.Writer) error {
	var chosen []string
	for _, arg := range args {
		arg = filepath.ToSlash(filepath.Clean(arg))
		below := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			return arg != "." && name != arg && !strings.HasPrefix(name, arg+"/")
		})
		if len(below) == 0 {
			return fmt.Errorf("%s isn't a file of the repository", arg)
		}
		chosen = append(chosen, below...)
	}
	found, err := find(rs, root, chosen)
	if err != nil {
		return err
	}
	for _, f := range found {
		fmt.Fprintln(out, f)
	}
	fmt.Fprintf(out, "prose: %s findings\n", thousands(len(found)))
	if len(found) > 0 {
		return errFindings
	}
	return nil
}

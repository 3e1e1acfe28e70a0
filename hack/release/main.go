// Command release builds the files of a release of paictl in a folder. The same commit results in the same bytes. It is a separate module, so that
// paictl doesn't depend on the libraries that write packages. docs/releases.md describes the files.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// options holds the flags of the command.
type options struct {
	out, version, address, builder string
	only, platforms                []string
	publicKey, secretKey, password string
	bundles                        string
	snapshot                       bool
}

func parse(args []string, progress io.Writer) (options, error) {
	var o options
	var only, platforms, passwordFile string
	fl := flag.NewFlagSet("release", flag.ContinueOnError)
	fl.SetOutput(progress)
	fl.StringVar(&o.out, "out", "dist/release", "`folder` of releases; the files are in a folder of it, named after the version")
	fl.StringVar(&o.version, "version", "", "version of the release (default: the tag of the commit)")
	fl.StringVar(&o.address, "address", "", "`URL` below which the release will be published (default: the one of paictl's source)")
	fl.StringVar(&o.builder, "builder", "https://github.com/openpai/paictl/hack/release", "`URI` of the machine or service that builds, for the provenance")
	fl.StringVar(&only, "only", strings.Join(partNames(), ","), "make only these `parts`")
	fl.StringVar(&platforms, "platforms", strings.Join(allPlatforms, ","), "`list` of platforms of paictl")
	fl.StringVar(&o.publicKey, "public-key", "", "`file` with minisign's public key, which becomes part of paictl and of install.sh")
	fl.StringVar(&o.secretKey, "secret-key", "", "`file` with minisign's secret key; without it, sign checksums.txt with minisign yourself")
	fl.StringVar(&passwordFile, "password-file", "", "`file` with the password of the secret key")
	fl.StringVar(&o.bundles, "bundles", "dist/bundles", "`folder` with finished bundles by architecture, for the part bundle")
	fl.BoolVar(&o.snapshot, "snapshot", false, "allow a tree with changes, a commit without a tag, and a release without a key: not to be published")
	if err := fl.Parse(args); err != nil {
		return o, err
	}
	if fl.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", fl.Arg(0))
	}
	o.only, o.platforms = strings.Split(only, ","), strings.Split(platforms, ",")
	for _, p := range o.only {
		if !slices.Contains(partNames(), p) {
			return o, fmt.Errorf("--only %s: the parts are %s", p, strings.Join(partNames(), ", "))
		}
	}
	for _, p := range o.platforms {
		if !slices.Contains(allPlatforms, p) {
			return o, fmt.Errorf("--platforms %s: the platforms are %s", p, strings.Join(allPlatforms, ", "))
		}
	}
	if passwordFile != "" {
		data, err := os.ReadFile(passwordFile)
		if err != nil {
			return o, fmt.Errorf("read the password of the secret key: %w", err)
		}
		o.password = strings.TrimRight(string(data), "\r\n")
	}
	return o, nil
}

func run(ctx context.Context, args []string, progress io.Writer) error {
	opts, err := parse(args, progress)
	if err != nil {
		return err
	}
	b, err := newBuild(ctx, opts, progress)
	if err != nil {
		return err
	}
	defer os.RemoveAll(b.work)
	for _, p := range parts {
		if !slices.Contains(opts.only, p.name) {
			continue
		}
		fmt.Fprintf(progress, "making %s\n", p.name)
		if err := p.make(ctx, b); err != nil {
			return fmt.Errorf("make %s: %w", p.name, err)
		}
	}
	return b.finish(ctx)
}

// Command site writes the documents as a site of static files, which also works without a server and without a network. Hugo renders the pages with
// the layout in theme; hack/tools/hugo pins its version. This program selects the pages, passes settings to Hugo that the Markdown doesn't contain,
// and writes the search index. It fails if the result contains a dead link.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

func main() { os.Exit(start()) }

func start() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		return 1
	}
	return 0
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("site", flag.ContinueOnError)
	flags.SetOutput(stderr)
	root := flags.String("root", ".", "`folder` of the checkout")
	out := flags.String("out", "dist/site", "`folder` of the site, whose files are replaced")
	hugo := flags.String("hugo", "", "`program` of Hugo (default: the one that hack/hugo.sh builds)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if *hugo == "" {
		said, err := command(ctx, *root, stderr, "sh", "hack/hugo.sh")
		if err != nil {
			return err
		}
		*hugo = strings.TrimSpace(said)
	}
	s := site{root: *root, out: *out, hugo: *hugo, progress: stderr}
	if err := s.build(ctx); err != nil {
		return err
	}
	page, err := filepath.Abs(filepath.Join(*out, "index.html"))
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%d pages of %s: open file://%s\n", s.pages, strings.Join(s.names(), ", "), page)
	return nil
}

// command runs a program in a folder, and returns its output.
func command(ctx context.Context, dir string, stderr io.Writer, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stderr = dir, stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return string(out), nil
}

package volume

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

const usage = `usage: pai-volume prepare --owner UID[:GID] --mode 0750 [--root DIR] PATH...
       pai-volume remove [--keep-folder] [--root DIR] PATH...

prepare makes the folders and gives them their owner and mode where they differ.
remove deletes the folders with all their contents.
--root DIR is where the machine's "/" is mounted; each PATH is one of the machine.
`

// Run runs the program pai-volume with the given arguments. Run prints the changes of folders to out.
func Run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("no command\n%s", usage)
	}
	switch args[0] {
	case "prepare":
		return runPrepare(ctx, args[1:], out)
	case "remove":
		return runRemove(ctx, args[1:], out)
	}
	return fmt.Errorf("unknown command %q\n%s", args[0], usage)
}

func runPrepare(ctx context.Context, args []string, out io.Writer) error {
	fs := newFlags("prepare")
	root := fs.String("root", "/", "")
	ownerText := fs.String("owner", "", "")
	modeText := fs.String("mode", "0750", "")
	if err := parse(fs, args); err != nil {
		return err
	}
	owner, err := ParseOwner(*ownerText)
	if err != nil {
		return err
	}
	mode, err := ParseMode(*modeText)
	if err != nil {
		return err
	}
	return each(ctx, *root, fs.Args(), func(r *os.Root, path string) error {
		did, err := Prepare(r, path, owner, mode)
		if err != nil {
			return err
		}
		if len(did) == 0 {
			did = []string{"unchanged"}
		}
		_, err = fmt.Fprintf(out, "%s: %s\n", path, strings.Join(did, ", "))
		return err
	})
}

func runRemove(ctx context.Context, args []string, out io.Writer) error {
	fs := newFlags("remove")
	root := fs.String("root", "/", "")
	keep := fs.Bool("keep-folder", false, "")
	if err := parse(fs, args); err != nil {
		return err
	}
	return each(ctx, *root, fs.Args(), func(r *os.Root, path string) error {
		if err := Remove(r, path, *keep); err != nil {
			return err
		}
		did := "removed"
		if *keep {
			did = "emptied"
		}
		_, err := fmt.Fprintf(out, "%s: %s\n", path, did)
		return err
	})
}

func newFlags(verb string) *flag.FlagSet {
	fs := flag.NewFlagSet("pai-volume "+verb, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	return fs
}

func parse(fs *flag.FlagSet, args []string) error {
	if err := fs.Parse(args); err != nil {
		return fmt.Errorf("%w\n%s", err, usage)
	}
	if fs.NArg() == 0 {
		return fmt.Errorf("no path\n%s", usage)
	}
	return nil
}

// each calls f for every path. If f fails for a path, each continues with the other paths.
func each(ctx context.Context, root string, paths []string, f func(*os.Root, string) error) error {
	r, err := os.OpenRoot(root)
	if err != nil {
		return fmt.Errorf("open the root: %w", err)
	}
	defer r.Close()
	var failed []error
	for _, path := range paths {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(failed, err)...)
		}
		if err := f(r, path); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

package peer

import (
	"context"
	"errors"
	"io"
	"strings"
)

// Run runs the program pai-peer. args is "serve" or "fetch", and optionally a prefix for all paths, which only tests use. The input isn't in the
// arguments, because other users can read arguments. "serve" ends when stdin is closed at the end of the SSH session.
func Run(ctx context.Context, args []string, what io.Reader, stdin io.Reader, stdout io.Writer) error {
	if len(args) == 0 || len(args) > 2 {
		return errUsage
	}
	root := strings.Join(args[1:], "")
	switch args[0] {
	case "serve":
		s, err := told[Serving](what)
		if err != nil {
			return err
		}
		s.Folder = root + s.Folder
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			_, _ = io.Copy(io.Discard, stdin) // only the end of the input matters
		}()
		return Serve(ctx, s, stdout, gone)
	case "fetch":
		f, err := told[Fetching](what)
		if err != nil {
			return err
		}
		f.Path, f.Part = root+f.Path, root+f.Part
		if f.Folder != "" {
			f.Folder = root + f.Folder
		}
		return Fetch(ctx, f, stdout)
	}
	return errUsage
}

var errUsage = errors.New("usage: pai-peer serve|fetch [ROOT] 3<WHAT; paictl starts it")

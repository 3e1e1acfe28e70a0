package job

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/code"
	"github.com/openpai/paictl/pkg/job/stream"
	runtimecode "github.com/openpai/paictl/pkg/runtime/code"
	"github.com/openpai/paictl/pkg/runtime/transfer"
	"github.com/openpai/paictl/pkg/ui/terminal"
)

// CopyOptions are the options of "paictl job cp".
type CopyOptions struct {
	Factory *cmdutil.Factory
	Flags   Flags
	Target  TargetFlags
	Name    string
	Out     bool // copy out of the task
	Local   string
	Remote  string
}

// NewCmdCopy returns "paictl job cp".
func NewCmdCopy(f *cmdutil.Factory) *cobra.Command {
	opts := &CopyOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "cp SOURCE DESTINATION",
		Short: "Copy files between this machine and a task",
		Long: `Copies a file or a folder into a running task, or out of it, as cp -r does: into DESTINATION if that is a
folder, otherwise as DESTINATION. NAME:PATH is a path in the task; a path that doesn't begin with / is
relative to the folder in which the program started. The image needs no tar.

paictl writes only the requested file or folder, under its own name, and refuses everything else that the
task sends. It replaces or refuses links at the destination and never follows them. It skips links in
a folder that point outside of it.`,
		Example: `  paictl job cp train:/mnt/out/model.pt .
  paictl job cp train:logs ./logs-of-3 --task worker[3]
  paictl job cp ./conf.yaml train:/tmp/`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: opts.Flags.completeCopy(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := opts.complete(args[0], args[1]); err != nil {
				return err
			}
			return copyRun(cmd.Context(), opts)
		},
	}
	opts.Flags.add(f, cmd)
	opts.Target.add(f, &opts.Flags, cmd)
	cmd.Flags().BoolP("recursive", "r", false, "has no effect: folders are always copied with their content")
	_ = cmd.Flags().MarkHidden("recursive")
	return cmd
}

// completeCopy completes the names of jobs, and the names of files on this machine.
func (fl *Flags) completeCopy(f *cmdutil.Factory) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if strings.ContainsAny(word, ":/.") || len(args) > 1 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		names, _ := fl.completeJobs(f, 0)(cmd, nil, word)
		for i := range names {
			names[i] += ":"
		}
		return names, cobra.ShellCompDirectiveNoSpace
	}
}

// complete determines from the two arguments which side of the copy is in the task.
func (opts *CopyOptions) complete(source, destination string) error {
	fromJob, fromPath, from := remote(source)
	toJob, toPath, to := remote(destination)
	switch {
	case from && to:
		return cmdutil.Usagef("copy to this machine first, then into the other task")
	case !from && !to:
		return cmdutil.Usagef("write the side in the task as NAME:PATH; a file of this machine with a colon as ./NAME")
	case from:
		opts.Name, opts.Remote, opts.Local, opts.Out = fromJob, fromPath, destination, true
	default:
		opts.Name, opts.Remote, opts.Local = toJob, toPath, source
	}
	if opts.Remote == "" || opts.Local == "" {
		return cmdutil.Usagef("a path is missing: write NAME:PATH, such as %s:.", opts.Name)
	}
	return nil
}

// remote splits NAME:PATH. ok is false if the argument is a file on this machine: if the text before the colon contains a slash and isn't
// USER/NAME, and on Windows for C:\.
func remote(s string) (name, at string, ok bool) {
	name, at, ok = strings.Cut(s, ":")
	if !ok || name == "" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "/") || strings.Count(name, "/") > 1 || filepath.VolumeName(s) != "" {
		return "", "", false
	}
	return name, at, true
}

func copyRun(ctx context.Context, opts *CopyOptions) error {
	if !opts.Out {
		// Report a missing file before the cluster is contacted.
		if kind, err := transfer.KindOf(opts.Local); err != nil {
			return err
		} else if kind != transfer.File && kind != transfer.Folder {
			return hint.Errorf("name a file or a folder of this machine", "there is no file %s", opts.Local)
		}
	}
	c, j, err := opts.Flags.find(ctx, opts.Factory, opts.Name)
	if err != nil {
		return err
	}
	target, err := opts.Target.pick(ctx, opts.Factory, c, j)
	if err != nil {
		return err
	}
	if !target.OwnRuntime {
		return hint.Errorf("use tar: paictl job exec "+opts.Name+" -i -- tar x", "%s has no job runtime, which is needed to copy", target.Task)
	}
	t := &copier{opts: opts, client: c, target: target, said: terminal.Plain(opts.Factory.IO.Err)}
	kind, err := t.kind(ctx)
	if err != nil {
		return t.explain(err)
	}
	if opts.Out {
		err = t.fetch(ctx, kind)
	} else {
		err = t.send(ctx, kind)
	}
	if err != nil {
		return t.explain(err)
	}
	opts.Factory.IO.Say("copied %s", code.Size(t.bytes))
	return nil
}

// copier holds the state of one copy.
type copier struct {
	opts   *CopyOptions
	client *client.Jobs
	target *job.Target
	bytes  int64     // the size in bytes of files
	said   io.Writer // messages of the task, for the terminal
}

func (t *copier) explain(err error) error {
	if t.target.LacksRuntime(err) {
		return noRuntime(t.target)
	}
	if _, ok := errors.AsType[*stream.ExitError](err); ok {
		return cmdutil.ErrSilent // the runtime has reported the error on stderr
	}
	return t.client.Explain(fmt.Errorf("copy %s of %s: %w", t.opts.Remote, t.target.Task, err))
}

// run runs paictl's runtime in the task with the given arguments.
func (t *copier) run(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
	return t.client.Exec(ctx, t.target, stream.Command{Args: t.target.Runtime(args...), Stdin: in, Stdout: out, Stderr: t.said})
}

// maxKind limits the output of cp-kind, in bytes. Every kind is shorter.
const maxKind = 64

// kind returns whether opts.Remote is a file, a folder or another type of file in the task.
func (t *copier) kind(ctx context.Context) (transfer.Kind, error) {
	var b bytes.Buffer
	if err := t.run(ctx, nil, &limited{&b, maxKind}, "cp-kind", t.opts.Remote); err != nil {
		return "", err
	}
	return transfer.Kind(strings.TrimSpace(b.String())), nil
}

// limited is a writer that fails once more bytes are written than left.
type limited struct {
	io.Writer
	left int
}

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, errors.New("the task's answer is too long")
	}
	return l.Writer.Write(p)
}

// leftOut prints that a file isn't copied, and why.
func (t *copier) leftOut(name, why string) {
	t.opts.Factory.IO.Say("left out: %s", terminal.Line(name+" ("+why+")"))
}

// fetch copies files from the task to this machine.
func (t *copier) fetch(ctx context.Context, kind transfer.Kind) error {
	switch kind {
	case transfer.File, transfer.Folder:
	case transfer.None:
		return errors.New("there is no such file in the task")
	default:
		return errors.New("it is neither a file nor a folder")
	}
	here, err := transfer.KindOf(t.opts.Local)
	if err != nil {
		return err
	}
	dir, name := destination(filepath.Clean(t.opts.Local), here, path.Base(path.Clean(t.opts.Remote)), isFolder(t.opts.Local))
	if kind == transfer.Folder && here == transfer.File {
		return fmt.Errorf("%s is a file, and can't become a folder", t.opts.Local)
	}
	if name == "." || name == "/" || name == ".." {
		name = t.opts.Name[strings.LastIndexAny(t.opts.Name, "/~")+1:]
	}
	read, write := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := t.run(ctx, nil, write, "cp-out", t.opts.Remote, name)
		write.CloseWithError(err)
		done <- err
	}()
	t.bytes, err = runtimecode.Receive(ctx, read, dir, runtimecode.Parcel{Name: name, Folder: kind == transfer.Folder, Skipped: t.leftOut})
	read.CloseWithError(err)
	if sent := <-done; sent != nil && !errors.Is(sent, io.ErrClosedPipe) {
		return sent
	}
	return err
}

// send copies files from this machine into the task.
func (t *copier) send(ctx context.Context, kind transfer.Kind) error {
	whole, err := filepath.Abs(t.opts.Local)
	if err != nil {
		return err
	}
	dir, name := destination(path.Clean(t.opts.Remote), kind, filepath.Base(whole), isFolder(t.opts.Remote))
	if local, err := transfer.KindOf(t.opts.Local); err == nil && local == transfer.Folder && kind == transfer.File {
		return fmt.Errorf("%s of the task is a file, and can't become a folder", t.opts.Remote)
	}
	read, write := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		n, err := transfer.Pack(ctx, write, t.opts.Local, name, t.leftOut)
		t.bytes = n
		write.CloseWithError(err)
		packed <- err
	}()
	err = t.run(ctx, read, t.said, "cp-in", dir)
	read.CloseWithError(io.ErrClosedPipe)
	if p := <-packed; p != nil && !errors.Is(p, io.ErrClosedPipe) {
		return p
	} else if err == nil && p != nil {
		return errors.New("the task received only a part of it")
	}
	return err
}

// destination returns the folder that the copy is written to, and the name of the copy in this folder. It follows the rules of cp.
func destination(to string, kind transfer.Kind, base string, folder bool) (dir, name string) {
	if kind == transfer.Folder || kind == transfer.None && folder {
		return to, base
	}
	return filepath.Dir(to), filepath.Base(to)
}

func isFolder(name string) bool { return strings.HasSuffix(name, "/") || strings.HasSuffix(name, "/.") }

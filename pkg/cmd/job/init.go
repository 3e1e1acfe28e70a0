package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/prompt"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/protocol"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// InitOptions are the options of "paictl job init".
type InitOptions struct {
	Factory *cmdutil.Factory
	IO      *iostreams.IOStreams
	Flags   Flags
	Draft   protocol.Draft
	// Found means that the draft uses an image that the cluster's machines already have, because no flag names an image.
	Found bool
	File  string
	Force bool
	// Ask means that the command prompts for values that have no flag.
	Ask bool
}

// NewCmdInit returns "paictl job init".
func NewCmdInit(f *cmdutil.Factory) *cobra.Command {
	opts := &InitOptions{Factory: f, IO: f.IO, Draft: protocol.DefaultDraft()}
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a new job file",
		Long: `Writes a commented job file with one role; you can submit it unchanged. On a terminal, and without flags
that describe the job, it asks for the values; otherwise it uses the flags and their defaults.

If the cluster answers, the default image is one that all its machines already have; otherwise it is one that
must be pulled. A comment in the file says which.`,
		Example: `  paictl job init
  paictl job init --name train --image pytorch/pytorch:2.9.0 --gpus 8 --instances 4 \
    --command 'torchrun train.py' -o train.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opts.Ask, opts.Found = f.IO.CanPrompt(), !cmd.Flags().Changed("image")
			for _, name := range draftFlags() {
				opts.Ask = opts.Ask && !cmd.Flags().Changed(name)
			}
			return initRun(cmd.Context(), opts)
		},
	}
	d, fl := &opts.Draft, cmd.Flags()
	fl.StringVar(&d.Name, "name", d.Name, "name of the job")
	fl.StringVar(&d.Role, "role", d.Role, "name of the role")
	fl.StringVar(&d.Image, "image", d.Image, "image to run it in")
	fl.StringArrayVar(&d.Commands, "command", d.Commands, "command to run; repeat the flag for several")
	fl.IntVar(&d.Instances, "instances", d.Instances, "number of tasks")
	fl.IntVar(&d.GPU, "gpus", d.GPU, "GPUs of one task")
	fl.Float64Var(&d.CPU, "cpus", d.CPU, "processors of one task, such as 4 or 0.5")
	fl.Var((*megabytes)(&d.MemoryMB), "memory", memoryUsage)
	fl.IntVar(&d.RetryCount, "retries", d.RetryCount, "how often to retry after failures of unknown cause")
	fl.StringVar(&d.VirtualCluster, "vc", d.VirtualCluster, "virtual cluster")
	fl.StringArrayVar(&d.Storages, "storage", nil, "storage that the tasks mount; repeat the flag for several")
	fl.StringVarP(&opts.File, "output", "o", "", "file to write (default: standard output; on a terminal, it asks)")
	fl.BoolVar(&opts.Force, "force", false, "overwrite the file")
	_ = cmd.MarkFlagFilename("output", "yaml", "yml")
	opts.Flags.addConnection(f, cmd)
	_ = cmd.RegisterFlagCompletionFunc("image", opts.Flags.completeImages(f))
	return cmd
}

// heldImages returns the names of the images that the cluster's machines already have.
func (fl *Flags) heldImages(ctx context.Context, f *cmdutil.Factory) ([]string, error) {
	c, err := fl.open(f)
	if err != nil {
		return nil, err
	}
	return c.Images(ctx)
}

// completeImages completes the name of an image that the cluster's machines already have.
func (fl *Flags) completeImages(f *cmdutil.Factory) cobra.CompletionFunc {
	return f.Complete(cmdutil.FlagValue, func(ctx context.Context, _ []string) ([]string, error) { return fl.heldImages(ctx, f) })
}

// findImage selects an image that the machines already have, so that it needn't be pulled.
func (opts *InitOptions) findImage(ctx context.Context) {
	opts.Draft.ImageNote = "The images on the machines are not known: this one is pulled from Docker Hub."
	ctx, cancel := context.WithTimeout(ctx, cmdutil.CompletionTimeout)
	defer cancel()
	images, err := opts.Flags.heldImages(ctx, opts.Factory)
	if err != nil {
		opts.Factory.Log.DebugContext(ctx, "ask for images", "error", err)
	}
	if held := job.FirstImage(images); held != "" {
		opts.Draft.Image, opts.Draft.ImageNote = held, "All machines of the cluster have this image."
	}
}

func draftFlags() []string {
	return []string{"name", "role", "image", "command", "instances", "gpus", "cpus", "memory", "retries", "vc", "storage"}
}

func initRun(ctx context.Context, opts *InitOptions) error {
	if opts.Found {
		opts.findImage(ctx)
	}
	if opts.Ask {
		if err := ask(opts); err != nil {
			return err
		}
	}
	text, err := written(&opts.Draft)
	if err != nil {
		return err
	}
	if opts.File == "" || opts.File == "-" {
		_, err := opts.IO.Out.Write(text)
		return err
	}
	if err := writeNew(opts.File, text, opts.Force, 0o644); err != nil {
		return err
	}
	opts.IO.Say("wrote %s; submit it with: paictl job submit %s", opts.File, opts.File)
	return nil
}

// written returns the job file of a draft. It returns an error if the file couldn't be submitted.
func written(d *protocol.Draft) ([]byte, error) {
	text, err := d.Write()
	if err != nil {
		return nil, err
	}
	if _, findings := protocol.Parse("job file", text); findings.Err() != nil {
		first := findings.Errors()[0]
		return nil, hint.Wrap(cmdutil.Usagef("this is not a valid job: %s: %s", first.Field, first.Message), first.Remedy)
	}
	return text, nil
}

// writeNew writes a new file. It overwrites an existing file only if force is set.
func writeNew(name string, text []byte, force bool, mode os.FileMode) error {
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(name, flags, mode)
	if errors.Is(err, os.ErrExist) {
		return hint.Errorf("name another file, or overwrite it with --force", "%s exists already", name)
	}
	if err != nil {
		return err
	}
	if _, err := f.Write(text); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}

// ask prompts for the values of the draft. An empty answer accepts the value in brackets.
func ask(opts *InitOptions) error {
	d := &opts.Draft
	q := &questions{s: opts.IO, valid: func() error {
		_, err := written(d)
		return err
	}}
	q.text("Name of the job", &d.Name)
	offered := d.Image
	q.text("Image", &d.Image)
	if d.Image != offered {
		d.ImageNote = ""
	}
	q.text("Command", &d.Commands[0])
	q.number("Tasks", &d.Instances)
	q.number("GPUs of one task", &d.GPU)
	q.fraction("Processors of one task", d.CPU, func(n float64) bool {
		d.CPU = n
		return true
	})
	q.number("Memory of one task in MB", &d.MemoryMB)
	q.text("Virtual cluster", &d.VirtualCluster)
	if opts.File == "" {
		opts.File = d.Name + ".yaml"
		q.text("File", &opts.File)
	}
	return q.err
}

// questions asks questions in the order of the calls. After a question that can't be asked, it asks no further questions. It repeats a question
// if the answer makes the job invalid.
type questions struct {
	s     *iostreams.IOStreams
	valid func() error
	err   error
}

func (q *questions) text(question string, value *string) {
	for q.err == nil {
		before := *value
		if q.line(question, value); q.fine() {
			return
		}
		*value = before
	}
}

func (q *questions) line(question string, value *string) {
	fmt.Fprintf(q.s.Err, "%s [%s]: ", question, *value)
	answer, err := prompt.Line(q.s.In)
	if errors.Is(err, io.EOF) {
		err = context.Canceled
	}
	if q.err = err; err == nil && answer != "" {
		*value = answer
	}
}

// fine reports whether the answer is valid, and prints the reason if it isn't.
func (q *questions) fine() bool {
	if q.err != nil {
		return true
	}
	err := q.valid()
	cmdutil.PrintError(q.s.Err, err)
	return err == nil
}

func (q *questions) number(question string, value *int) {
	q.fraction(question, float64(*value), func(n float64) bool {
		*value = int(n)
		return n == float64(*value)
	})
}

func (q *questions) fraction(question string, value float64, set func(float64) bool) {
	for q.err == nil {
		text := strconv.FormatFloat(value, 'f', -1, 64)
		q.line(question, &text)
		n, err := strconv.ParseFloat(text, 64)
		switch {
		case q.err != nil:
		case err != nil || n < 0 || n > math.MaxInt32 || !set(n):
			fmt.Fprintln(q.s.Err, "Write a number, such as 1.")
			set(value)
		case q.fine():
			return
		default:
			set(value)
		}
	}
}

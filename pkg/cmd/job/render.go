package job

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/protocol"
	"github.com/openpai/paictl/pkg/job/protocol/render"
	"github.com/openpai/paictl/pkg/kube"
)

// RenderOptions are the options of "paictl job render".
type RenderOptions struct {
	Factory     *cmdutil.Factory
	Flags       Flags
	File        string
	Source      Source
	ShowSecrets bool
	Output      cmdutil.Output
}

// NewCmdRender returns "paictl job render".
func NewCmdRender(f *cmdutil.Factory) *cobra.Command {
	opts := &RenderOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "render FILE",
		Short: "Show the objects that the submission of a job file would create",
		Long: `Prints the Framework and the Secrets that "paictl job submit" creates from a job file with the same
--user, --set, --name, --group and --code. Nothing is created or sent. It connects to a cluster only with
--kubeconfig or --context: without them, names of images are this release's, and settings that
only a cluster knows (its virtual clusters, storages, machines) are neither checked nor filled in. FILE can be -
for standard input.

Secrets are masked, also in commands, unless --show-secrets is given.`,
		Example: `  paictl job render train.yaml
  paictl job render train.yaml --name train-lr2 --set lr=0.01
  paictl job render train.yaml --user alice --kubeconfig ~/.kube/config -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.File = args[0]
			if err := opts.Source.check(); err != nil {
				return err
			}
			return renderRun(cmd.Context(), opts)
		},
	}
	opts.Flags.add(f, cmd)
	opts.Source.add(cmd)
	cmd.Flags().BoolVar(&opts.ShowSecrets, "show-secrets", false, "print secrets unmasked")
	cmdutil.AddOutputFlag(cmd, &opts.Output, "yaml", "json")
	return cmd
}

func renderRun(ctx context.Context, opts *RenderOptions) error {
	all, err := opts.Source.read(opts.Factory, []string{opts.File})
	if err != nil {
		return err
	}
	o, err := opts.options(ctx)
	if err != nil {
		return err
	}
	objects, findings := render.Render(all[0].job, o)
	if err := report(opts.Factory, findings); err != nil {
		return err
	}
	if opts.ShowSecrets {
		return opts.write(objects)
	}
	if objects, err = withoutSecrets(all[0].job, o); err != nil {
		return err
	}
	return opts.write(objects)
}

// report prints the findings. It returns ErrSilent if a finding is an error and not only a warning.
func report(f *cmdutil.Factory, findings strictyaml.Findings) error {
	if err := findings.Write(f.IO.Err); err != nil {
		return err
	}
	if len(findings.Errors()) > 0 {
		return cmdutil.ErrSilent
	}
	return nil
}

func (opts *RenderOptions) options(ctx context.Context) (render.Options, error) {
	user, err := opts.Flags.unsigned(opts.Factory)
	if err != nil {
		return render.Options{}, err
	}
	o := render.Options{User: user, Group: opts.Source.group(opts.Factory), Namespace: kube.JobNamespace, Now: time.Now()}
	o.Cluster = render.Cluster{RuntimeImage: "pai-runtime:" + opts.Factory.Version, SchedulerName: "pai-scheduler", PeersURL: defaultPeersURL}
	codeURL := defaultCodeURL
	if opts.Flags.Server != "" {
		return o, client.Absent("paictl job render --server")
	}
	if opts.Flags.Kube != (kube.Options{}) {
		c, err := job.Open(opts.Flags.Kube)
		if err != nil {
			return o, err
		}
		facts, err := c.Facts(ctx)
		if err != nil {
			return o, err
		}
		o.Cluster, codeURL = facts.Cluster, facts.Configuration.CodeURL
	}
	if opts.Source.Code != "" && codeURL == "" {
		return o, job.ErrNoCode
	}
	folder, err := opts.Source.pack(ctx, opts.Factory, nil)
	if folder != nil {
		o.Code = folder.At(codeURL)
	}
	return o, err
}

// withoutSecrets renders a job with a mask in place of each secret, so that the objects can be printed. The masks in the Secret objects aren't
// encoded in base64.
func withoutSecrets(j *protocol.Job, o render.Options) (*render.Objects, error) {
	masked, err := j.WithoutSecrets()
	if err != nil {
		return nil, err
	}
	o.NewKey = func() (string, error) { return protocol.Masked, nil }
	objects, findings := render.Render(masked, o)
	if err := findings.Err(); err != nil {
		return nil, err
	}
	for _, s := range objects.Secrets {
		s.StringData = map[string]string{}
		for key, value := range s.Data {
			s.StringData[key] = string(value)
		}
		s.Data = nil
		if s.Type == corev1.SecretTypeDockerConfigJson {
			// The login in this Secret is base64-encoded a second time.
			s.StringData = map[string]string{corev1.DockerConfigJsonKey: protocol.Masked}
		}
	}
	return objects, nil
}

func (opts *RenderOptions) write(o *render.Objects) error {
	items := []any{o.Framework}
	for _, s := range o.Secrets {
		items = append(items, s)
	}
	out := opts.Factory.IO.Out
	if opts.Output.Is("json") {
		return opts.Output.Write(out, map[string]any{"apiVersion": "v1", "kind": "List", "items": items}, cmdutil.Table{})
	}
	for i, item := range items {
		if i > 0 {
			fmt.Fprintln(out, "---")
		}
		b, err := yaml.Marshal(item)
		if err != nil {
			return err
		}
		if _, err := out.Write(b); err != nil {
			return err
		}
	}
	return nil
}

package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmd/session"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/pkg/services/catalogue"
	"github.com/openpai/paictl/pkg/services/catalogue/fetch"
	"github.com/openpai/paictl/pkg/ui/plural"
	"github.com/openpai/paictl/pkg/ui/progress"
	"github.com/openpai/paictl/templates"
)

// Flags are the flags that the commands on services share.
type Flags struct {
	Kube   kube.Options
	Names  []string
	Except []string
	// Dir is a configuration folder. It may be "".
	Dir string
	// DirGiven means that Dir comes from the command line and not from a setting.
	DirGiven bool

	command, again string
}

// add adds the flags that choose the cluster, and records the command line.
func (fl *Flags) add(cmd *cobra.Command) {
	cmdutil.AddKubeFlags(cmd, &fl.Kube)
	before := cmd.PreRunE
	cmd.PreRunE = func(c *cobra.Command, args []string) error {
		fl.command, fl.again = session.Typed(c, args), session.Typed(c, nil, "name", "except", "all")
		fl.Names = append(fl.Names, args...)
		if before != nil {
			return before(c, args)
		}
		return nil
	}
}

// addNames adds -n and, for a command on several services, -x. Names may also be arguments without -n.
func (fl *Flags) addNames(cmd *cobra.Command, names, except string) {
	cmd.Args, cmd.ValidArgsFunction = cobra.ArbitraryArgs, completeNames
	cmd.Flags().StringSliceVarP(&fl.Names, "name", "n", nil, names)
	_ = cmd.RegisterFlagCompletionFunc("name", completeNames)
	if except != "" {
		cmd.Flags().StringSliceVarP(&fl.Except, "except", "x", nil, except)
		_ = cmd.RegisterFlagCompletionFunc("except", completeNames)
	}
}

// addDir adds -p. The default is the folder in the settings.
func (fl *Flags) addDir(cmd *cobra.Command, f *cmdutil.Factory, usage string) {
	cmd.Flags().StringVarP(&fl.Dir, "config-path", "p", "", usage)
	_ = cmd.MarkFlagDirname("config-path")
	before := cmd.PreRunE
	cmd.PreRunE = func(c *cobra.Command, args []string) error {
		fl.DirGiven = c.Flags().Changed("config-path")
		if !fl.DirGiven {
			settings, err := f.Settings()
			if err != nil {
				return err
			}
			fl.Dir = settings.GetString("config")
		}
		if before != nil {
			return before(c, args)
		}
		return nil
	}
}

// one returns the name of the service in a command about exactly one service.
func (fl *Flags) one(cmd *cobra.Command) (string, error) {
	if len(fl.Names) != 1 {
		return "", cmdutil.Usagef("name one service (see %s --help)", cmd.CommandPath())
	}
	return fl.Names[0], nil
}

// options returns the options of a run without the sink.
func (fl *Flags) options(wait time.Duration) services.Options {
	return services.Options{Names: fl.Names, Except: fl.Except, Wait: wait, Command: fl.command, Again: fl.again}
}

// opened is a connection to a cluster and its services.
type opened struct {
	*services.Platform
	cluster *kube.Cluster
}

// cluster connects to the cluster of the kubeconfig. It sends no request yet.
func (fl *Flags) cluster(f *cmdutil.Factory) (*kube.Cluster, error) {
	c, err := kube.Open(fl.Kube)
	if err == nil {
		return c, nil
	}
	if w, other := connection.Choose(f, fl.Kube, ""); other == nil && w != nil {
		err = hint.Errorf("use a kubeconfig of an administrator of the cluster: --kubeconfig FILE",
			"you are signed in, but this needs a kubeconfig: releases of services are Secrets, which the platform's server doesn't read (%w)", err)
	}
	return nil, err
}

// open connects to the cluster and its services. It sends no request yet.
func (fl *Flags) open(f *cmdutil.Factory) (*opened, error) {
	c, err := fl.cluster(f)
	if err != nil {
		return nil, err
	}
	p, err := Platform(f, c, fl.Dir)
	return &opened{cluster: c, Platform: p}, err
}

// Platform returns the services of a cluster. If dir isn't "", the configuration of the cluster is compared with the configuration in this
// folder.
func Platform(f *cmdutil.Factory, c *kube.Cluster, dir string) (*services.Platform, error) {
	p, err := services.Open(c, dir, f.Log)
	if err != nil {
		return nil, err
	}
	if dir != "" {
		p.Load = services.Compared(p.Load, dir)
	}
	p.Fetcher = fetcher(f)
	return p, nil
}

// fetcher returns a function that creates fetchers of upstream charts. A fetcher uses the bundle if the settings or the configuration contain
// one.
func fetcher(f *cmdutil.Factory) func(*services.Desired) catalogue.Fetcher {
	return func(d *services.Desired) catalogue.Fetcher {
		o := fetch.Options{Registry: d.Config.Services.Cluster.DockerRegistry, Bundle: d.Config.Kubernetes.Kubernetes.Bundle}
		if settings, err := f.Settings(); err == nil && settings.GetString("bundle") != "" {
			o.Bundle = settings.GetString("bundle")
		}
		return fetch.New(o)
	}
}

// load returns the configuration in the folder that the user gave. Without a folder, it connects to the cluster, and returns the configuration
// that the cluster stores. It returns mistakes in the configuration as an error.
func (fl *Flags) load(ctx context.Context, f *cmdutil.Factory) (*services.Desired, *opened, error) {
	d, c, err := fl.loadReadable(ctx, f)
	if err == nil {
		err = d.Mistakes
	}
	return d, c, err
}

// loadReadable returns the same configuration as load, for a command that only lists services. Mistakes in sections of services are only in
// Desired.Mistakes.
func (fl *Flags) loadReadable(ctx context.Context, f *cmdutil.Factory) (*services.Desired, *opened, error) {
	if fl.DirGiven {
		d, err := services.FromFolder(fl.Dir)(ctx)
		return d, nil, err
	}
	c, err := fl.cluster(f)
	if err != nil {
		return nil, nil, err
	}
	p, err := Platform(f, c, "")
	if err != nil {
		return nil, &opened{cluster: c}, err
	}
	d, err := p.LoadPlaced(ctx) // the values that a start would use
	return d, &opened{cluster: c}, err
}

// tellMistakes prints the mistakes in a configuration as warnings. wrong is Desired.Mistakes.
func tellMistakes(f *cmdutil.Factory, wrong error) error {
	found, _ := errors.AsType[config.Findings](wrong)
	mistakes := found.Errors()
	if len(mistakes) == 0 {
		return wrong
	}
	fmt.Fprintf(f.IO.Err, "warning: the configuration has %s; no service is started until you correct the files:\n", plural.Of(len(mistakes), "mistake"))
	if err := mistakes.Write(f.IO.Err); err != nil {
		return err
	}
	if remedy := hint.Of(wrong); remedy != "" {
		fmt.Fprintf(f.IO.Err, "  -> %s\n", remedy)
	}
	return nil
}

// explain adds a remedy to an error of the Kubernetes API.
func (c *opened) explain(err error) error {
	if c == nil {
		return err
	}
	return c.cluster.Explain(err)
}

// run calls do with a sink that displays the progress, and prints the plan of a dry run.
func (c *opened) run(ctx context.Context, f *cmdutil.Factory, format string, o services.Options, do func(context.Context, services.Options) error) error {
	s := &sink{open: func() progress.ServiceRenderer { return progress.OpenServices(ctx, f.IO, format) }}
	o.Sink = s
	err := c.explain(do(ctx, o))
	if cerr := s.close(); err == nil {
		err = cerr
	}
	if !o.DryRun || format == "json" || s.planned == nil && err != nil {
		return err
	}
	if werr := progress.WriteServicePlan(f.IO.Out, s.planned); err == nil {
		err = werr
	}
	return err
}

// completeNames completes the names of the services that are part of this paictl. It doesn't list the services of the cluster, because it
// doesn't connect to the API.
func completeNames(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	entries, err := fs.ReadDir(templates.Charts(), "charts")
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, e.Name())
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

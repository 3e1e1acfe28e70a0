// Package image contains the commands "paictl image ...", which build, push and list paictl's own images.
// In: flags and a configuration. Out: calls of pkg/services/image, and tables.
package image

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/services/image"
	"github.com/openpai/paictl/pkg/version"
)

// NewCmdImage returns "paictl image" with its subcommands.
func NewCmdImage(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "image",
		Short: "Build the images of paictl's own programs and push images to a registry",
		Long: `paictl's own programs run in images that contain one static program each. They are part of
the bundle, and "paictl cluster up" copies them to the nodes: a cluster that paictl installed needs
no registry. A cluster that paictl did not install pulls them from the registry that
cluster.docker-registry names in services-configuration.yaml.`,
		Example: `  paictl image list
  paictl image build
  paictl image push -p ./cluster`,
	}
	cmd.AddCommand(newCmdBuild(f, nil), newCmdList(f), newCmdPush(f, nil))
	return cmd
}

// whereFlags are the flags that choose a registry.
type whereFlags struct {
	Dir      string
	Registry string
	Tag      string
	Mirror   string
	Insecure bool
}

func (w *whereFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVarP(&w.Dir, "config-path", "p", "", "folder with the configuration that names the registry (setting: config, PAICTL_CONFIG)")
	fl.StringVar(&w.Registry, "registry", "", "registry for paictl's own images, HOST/PROJECT, instead of the configuration's")
	fl.StringVar(&w.Tag, "tag", "", "tag of paictl's own images (default: the configuration's docker-tag, or "+version.Tag()+")")
	fl.StringVar(&w.Mirror, "mirror", "", "registry for upstream images, HOST[/PATH], instead of the configuration's")
	fl.BoolVar(&w.Insecure, "insecure", false, "accept any certificate of a registry on this machine")
	_ = cmd.MarkFlagDirname("config-path")
}

// registry returns the destination for images, and its credentials. The third result is false if no registry is given.
func (w *whereFlags) registry(f *cmdutil.Factory) (image.Destination, image.Access, bool, error) {
	d := image.Destination{Registry: w.Registry, Tag: w.Tag, Mirror: w.Mirror}
	a := image.Access{Insecure: w.Insecure}
	dir, err := w.configDir(f)
	if err != nil {
		return d, a, false, err
	}
	if dir != "" {
		c, err := config.Load(dir)
		if err != nil {
			return d, a, false, err
		}
		r := c.Services.Cluster.DockerRegistry
		d.Registry = cmp.Or(d.Registry, path.Join(r.Domain, r.Namespace))
		d.Tag, d.Mirror = cmp.Or(d.Tag, r.Tag), cmp.Or(d.Mirror, r.Mirror)
		a.Host, a.Username, a.Password = r.Domain, r.Username, r.Password
	}
	d.Tag = cmp.Or(d.Tag, version.Tag())
	if d.Registry == "" && d.Mirror == "" {
		return d, a, false, nil
	}
	if err := d.Check(); err != nil {
		return d, a, false, cmdutil.Usagef("%w", err)
	}
	if w.Insecure && slices.ContainsFunc([]string{d.Registry, d.Mirror}, func(r string) bool { return r != "" && !image.Loopback(r) }) {
		return d, a, false, cmdutil.Usagef("--insecure is only for registries on this machine")
	}
	return d, a, true, nil
}

// configDir returns the configuration folder that the user gave, otherwise the folder in paictl's settings. It returns "" if there is no folder,
// or if a flag gives the registry.
func (w *whereFlags) configDir(f *cmdutil.Factory) (string, error) {
	if w.Dir != "" || w.Registry != "" {
		return w.Dir, nil
	}
	settings, err := f.Settings()
	if err != nil {
		return "", err
	}
	return settings.GetString("config"), nil
}

// addNamesFlag adds the flag -n. The original paictl and "paictl service" also have this flag.
func addNamesFlag(cmd *cobra.Command, names *[]string) {
	cmd.Flags().StringSliceVarP(names, "name", "n", nil, "names, separated by commas; the same as arguments")
	_ = cmd.RegisterFlagCompletionFunc("name", cobra.FixedCompletions(image.Names(), cobra.ShellCompDirectiveNoFileComp))
}

// addFromFlag adds --from, which selects the folder with images.
func addFromFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "from", "", "folder with images (default: "+image.DefaultDir+" if it exists, or $PAICTL_BUNDLE, or "+bundle.DefaultDir+")")
	_ = cmd.MarkFlagDirname("from")
}

// from returns the folder with images: the given folder, otherwise the output of "image build" in the current folder, otherwise the bundle.
func from(f *cmdutil.Factory, given string) (string, error) {
	if given != "" {
		return given, nil
	}
	if _, err := os.Stat(filepath.Join(image.DefaultDir, bundle.ManifestFile)); err == nil {
		return image.DefaultDir, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	settings, err := f.Settings()
	if err != nil {
		return "", err
	}
	return cmp.Or(settings.GetString("bundle"), bundle.DefaultDir), nil
}

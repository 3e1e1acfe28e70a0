// Package cmdutil is what all commands share: the factory with its lazy parts, exit
// codes, error printing and output formats.
// In: streams and the environment. Out: what a command's options struct needs.
package cmdutil

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/viper"

	"github.com/openpai/paictl/pkg/iostreams"
)

// Factory gives commands what they need, made when first asked for, so that
// --help touches neither disk nor network.
type Factory struct {
	IO      *iostreams.IOStreams
	Version string

	// Getenv reads the environment; tests replace it.
	Getenv func(string) string
	// Log is the debug log. It goes to --log-file, else nowhere.
	Log *slog.Logger

	settings *viper.Viper
}

// New returns the factory of the program.
func New(version string) *Factory {
	return &Factory{
		IO:      iostreams.System(os.Getenv),
		Version: version,
		Getenv:  os.Getenv,
		Log:     slog.New(slog.DiscardHandler),
	}
}

// Settings returns paictl's own settings, from ~/.config/paictl/config.yaml and
// PAICTL_* variables. Cluster files never go through viper: it lower-cases keys.
func (f *Factory) Settings() (*viper.Viper, error) {
	if f.settings != nil {
		return f.settings, nil
	}
	v := viper.New()
	v.SetEnvPrefix("PAICTL")
	v.SetEnvKeyReplacer(strings.NewReplacer("-", "_"))
	v.AutomaticEnv()
	path := filepath.Join(f.configHome(), "paictl", "config.yaml")
	v.SetConfigFile(path)
	if _, err := os.Stat(path); err == nil {
		if err := v.ReadInConfig(); err != nil {
			return nil, err
		}
	}
	f.settings = v
	return v, nil
}

func (f *Factory) configHome() string {
	if d := f.Getenv("XDG_CONFIG_HOME"); d != "" {
		return d
	}
	return filepath.Join(f.Getenv("HOME"), ".config")
}

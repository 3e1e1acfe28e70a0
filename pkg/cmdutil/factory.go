// Package cmdutil has the code that all commands share: the factory with its lazy parts, exit
// codes, error printing and output formats.
// In: streams and the environment. Out: the values in a command's options struct.
package cmdutil

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/viper"

	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// Factory gives commands the objects that they need. It makes them when they are first used, so that
// --help touches neither disk nor network.
type Factory struct {
	IO      *iostreams.IOStreams
	Version string

	// Getenv reads the environment; tests replace it.
	Getenv func(string) string
	// Log is the debug log. It goes to --log-file, or is discarded.
	Log *slog.Logger

	settings *Settings
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

// Settings are paictl's own, from ~/.config/paictl/config.yaml and PAICTL_* variables.
// Cluster files never go through viper: it lower-cases keys.
type Settings struct {
	file   *viper.Viper
	getenv func(string) string
}

// GetString returns a setting: the variable's value if it has one, or the file's. Viper
// itself would read the process's environment and not Factory.Getenv.
func (s *Settings) GetString(key string) string {
	name := "PAICTL_" + strings.ToUpper(strings.ReplaceAll(key, "-", "_"))
	if v := s.getenv(name); v != "" {
		return v
	}
	return s.file.GetString(key)
}

// Settings returns paictl's own settings.
func (f *Factory) Settings() (*Settings, error) {
	if f.settings != nil {
		return f.settings, nil
	}
	v := viper.New()
	path := filepath.Join(f.ConfigHome(), "paictl", "config.yaml")
	v.SetConfigFile(path)
	if _, err := os.Stat(path); err == nil {
		if err := v.ReadInConfig(); err != nil {
			return nil, err
		}
	}
	f.settings = &Settings{file: v, getenv: f.Getenv}
	return f.settings, nil
}

// ConfigHome is the folder of all programs' settings.
func (f *Factory) ConfigHome() string {
	if d := f.Getenv("XDG_CONFIG_HOME"); d != "" {
		return d
	}
	return filepath.Join(f.Getenv("HOME"), ".config")
}

// Package cmdutil has the code that all commands share: the factory with its lazy parts, exit
// codes, error printing and output formats.
// In: streams and the environment. Out: the values in a command's options struct.
package cmdutil

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// Factory gives commands the objects that they need. It creates them on first use, so that --help
// touches neither disk nor network.
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
		Getenv:  getenv,
		Log:     slog.New(slog.DiscardHandler),
	}
}

// getenv reads the environment. Scripts that were written on Windows leave a carriage return at the end of a value, which no message
// would show.
func getenv(name string) string {
	if strings.HasPrefix(name, "PAICTL_") {
		return strings.TrimSpace(os.Getenv(name))
	}
	return os.Getenv(name)
}

// ConfigHome returns the folder for the settings of all programs.
func (f *Factory) ConfigHome() string {
	if d := f.Getenv("XDG_CONFIG_HOME"); d != "" {
		return d
	}
	return filepath.Join(f.Getenv("HOME"), ".config")
}

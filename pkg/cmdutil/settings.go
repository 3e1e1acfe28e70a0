package cmdutil

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/viper"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/hint"
)

// Settings are paictl's own settings, from ~/.config/paictl/config.yaml and PAICTL_* variables. Files of clusters are never read with viper,
// because viper converts keys to lower case.
type Settings struct {
	file   *viper.Viper
	getenv func(string) string
}

// settingsFile is the content of config.yaml. The fields are strings, so that values keep their text. For example, 0123 can be the name of a
// user.
type settingsFile struct {
	Bundle         string `yaml:"bundle"`
	Config         string `yaml:"config"`
	Group          string `yaml:"group"`
	Mirror         string `yaml:"mirror"`
	ReleaseAddress string `yaml:"release-address"`
	Server         string `yaml:"server"`
	User           string `yaml:"user"`
}

// GetString returns the value of a setting: the value of the environment variable if it is set, otherwise the value in the file. It doesn't use
// viper for the variables, because viper would read the environment of the process instead of calling Factory.Getenv.
func (s *Settings) GetString(key string) string {
	name := "PAICTL_" + strings.ToUpper(strings.ReplaceAll(key, "-", "_"))
	if v := s.getenv(name); v != "" {
		return v
	}
	return s.file.GetString(key)
}

// Settings returns paictl's own settings. It returns an error if the file contains a mistake, because ignoring a setting could give jobs another
// owner or select another cluster.
func (f *Factory) Settings() (*Settings, error) {
	if f.settings != nil {
		return f.settings, nil
	}
	values, err := readSettings(filepath.Join(f.ConfigHome(), "paictl", "config.yaml"))
	if err != nil {
		return nil, err
	}
	v := viper.New()
	for key, value := range map[string]string{
		"bundle": f.expand(values.Bundle), "config": f.expand(values.Config), "group": values.Group, "mirror": values.Mirror,
		"release-address": values.ReleaseAddress, "server": values.Server, "user": values.User,
	} {
		v.Set(key, value)
	}
	f.settings = &Settings{file: v, getenv: f.Getenv}
	return f.settings, nil
}

// expand replaces a leading ~ with the home folder. No shell does this for paths in a file.
func (f *Factory) expand(path string) string {
	if path == "~" || strings.HasPrefix(path, "~/") {
		return filepath.Join(f.Getenv("HOME"), path[1:])
	}
	return path
}

// readSettings reads config.yaml strictly. A missing or empty file contains no settings.
func readSettings(file string) (settingsFile, error) {
	var out settingsFile
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return out, nil
	}
	if err != nil {
		return out, hint.Wrap(fmt.Errorf("read paictl's settings: %w", err), "check the permissions of the file and its folder, or name another folder in XDG_CONFIG_HOME")
	}
	_, findings := strictyaml.Decode(file, data, &out)
	if len(findings) == 1 && findings[0].Rule == "yaml/empty" {
		return out, nil
	}
	return out, findings.Err()
}

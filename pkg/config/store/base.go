package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/hint"
)

// BaseFile is the name of the file with the base of a folder.
const BaseFile = ".paictl-revision"

// Base is the revision that was equal to a folder at its last pull or push.
type Base struct {
	ClusterID string `yaml:"cluster-id"`
	Revision  int    `yaml:"revision"`
	// UID is the UID of the configuration in the cluster. It is necessary because two clusters may have the same cluster ID.
	UID string `yaml:"configuration"`
}

// BaseOf returns the base of a folder whose files are equal to the revision r.
func BaseOf(r Revision) Base { return Base{r.ClusterID, r.Number, r.UID} }

// ReadBase reads the base of a folder. It returns nil if the folder has no base.
func ReadBase(dir string) (*Base, error) {
	path := filepath.Join(dir, BaseFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the folder's revision: %w", err)
	}
	var base Base
	if _, findings := strictyaml.Decode(path, b, &base); len(findings) > 0 {
		return nil, hint.Wrap(findings.Err(), "delete it; then compare with: paictl config diff, and push with --force")
	}
	return &base, nil
}

// Bytes returns the content of the file BaseFile.
func (b Base) Bytes() ([]byte, error) {
	return strictyaml.Encode(b, strictyaml.Comments{"": "The revision of the cluster's configuration that this folder is based on. Written by paictl."})
}

// Write writes the base into a folder atomically.
func (b Base) Write(dir string) error {
	data, err := b.Bytes()
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(dir, BaseFile+"-")
	if err != nil {
		return fmt.Errorf("note the revision in the folder: %w", err)
	}
	defer func() { _ = os.Remove(temp.Name()) }()
	_, err = temp.Write(data)
	err = errors.Join(err, temp.Chmod(0o644), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), filepath.Join(dir, BaseFile))
	}
	if err != nil {
		return fmt.Errorf("note the revision in the folder: %w", err)
	}
	return nil
}

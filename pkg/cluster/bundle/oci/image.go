package oci

import (
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Config is the configuration of an image for a container runtime.
type Config struct {
	Arch       string // amd64
	Entrypoint []string
	Cmd        []string
	// User is the number of the user that runs the image's program; "" means root.
	User   string
	Env    []string
	Labels map[string]string
}

// NewImage returns an image with the given layers, the lowest first.
func NewImage(c Config, layers ...v1.Layer) (v1.Image, error) {
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	file, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("make image: %w", err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", c.Arch
	file.Config = v1.Config{Entrypoint: c.Entrypoint, Cmd: c.Cmd, User: c.User, Env: c.Env, Labels: c.Labels, WorkingDir: "/"}
	if img, err = mutate.ConfigFile(img, file); err != nil {
		return nil, fmt.Errorf("make image: %w", err)
	}
	if img, err = mutate.AppendLayers(img, layers...); err != nil {
		return nil, fmt.Errorf("make image: %w", err)
	}
	return img, nil
}

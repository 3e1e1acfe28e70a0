package image

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/bundle/build"
	"github.com/openpai/paictl/pkg/hint"
)

// DefaultDir is the default folder for built images.
const DefaultDir = "dist/images"

// Build builds the named images of paictl's own programs in dir. Without names, it builds all images. bundle.Open can open the resulting folder,
// which contains only these images.
func Build(ctx context.Context, dir string, names []string, progress io.Writer) (*bundle.Bundle, error) {
	recipe, err := partOf(build.Own(), names)
	if err != nil {
		return nil, err
	}
	if err := refuseBundle(dir); err != nil {
		return nil, err
	}
	return build.Run(ctx, build.Options{Dir: dir, Recipe: &recipe, Progress: progress})
}

// partOf returns a recipe with only the named images and their programs. Without names, partOf returns the complete recipe.
func partOf(r build.Recipe, names []string) (build.Recipe, error) {
	if len(names) == 0 {
		return r, nil
	}
	images := r.Images
	r.Images = nil
	for _, n := range names {
		i := slices.IndexFunc(images, func(i build.Image) bool { return i.Name == n })
		if i < 0 {
			return r, hint.Errorf("the names are: "+strings.Join(Names(), ", "), "%s is not one of paictl's own images", n)
		}
		r.Images = append(r.Images, images[i])
	}
	return r, nil
}

// refuseBundle returns an error if dir contains a complete bundle, because a build would remove files of the bundle.
func refuseBundle(dir string) error {
	for _, kind := range []string{bundle.KindBinary, bundle.KindCNIPlugin} {
		folder := filepath.Dir(bundle.PathOf(kind, "x"))
		if _, err := os.Stat(filepath.Join(dir, folder)); err == nil {
			return hint.Errorf("run: paictl bundle build -o "+hint.Quote(dir)+", which also makes these images; or give another folder with -o",
				"%s contains a whole bundle", dir)
		} else if !os.IsNotExist(err) {
			return fmt.Errorf("read %s: %w", dir, err)
		}
	}
	return nil
}

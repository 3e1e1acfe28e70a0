// Command conformance adds Kubernetes' conformance tests to a bundle: the images of the tests' pods, and ginkgo, which runs the tests. It compiles
// them from source or makes them of Debian packages, as the other parts of a bundle. It also compiles the program with the tests, e2e.test, into
// FOLDER, and writes the list of registries that e2e.test reads.
//
//	go run ./hack/conformance BUNDLE FOLDER
//
// "make conformance" calls it, makes a cluster on sandbox hosts from the bundle, and runs the tests on that cluster.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/openpai/paictl/pkg/cluster/bundle/build"
)

// registries is the file that moves the tests' images to another registry. Without it, e2e.test uses upstream's images.
const registries = "promoterE2eRegistry: " + registry + "\ngcEtcdRegistry: " + registry + "\n"

func main() { os.Exit(start()) }

func start() int {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "Usage: go run ./hack/conformance BUNDLE FOLDER")
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		return 1
	}
	return 0
}

func run(ctx context.Context, bundle, dir string) error {
	recipe, err := withTests(build.Default())
	if err != nil {
		return err
	}
	if _, err := build.Run(ctx, build.Options{Dir: bundle, Recipe: &recipe, Progress: os.Stdout}); err != nil {
		return err
	}
	tests := filepath.Join(dir, "e2e.test")
	if err := compileTests(ctx, tests); err != nil {
		return err
	}
	list := filepath.Join(dir, "registries.yaml")
	if err := os.WriteFile(list, []byte(registries), 0o644); err != nil {
		return err
	}
	return checkReferences(ctx, tests, list, recipe)
}

// compileTests compiles the tests. The go command keeps compiled packages in its cache.
func compileTests(ctx context.Context, file string) error {
	file, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	fmt.Println("compiling e2e.test")
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-trimpath", "-buildvcs=false", "-vet=off", "-ldflags", "-s -w", "-gcflags=all=-dwarf=false",
		"-o", file, "k8s.io/kubernetes/test/e2e")
	cmd.Dir, cmd.Stdout, cmd.Stderr = filepath.Join(modulesDir, "kubernetes"), os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("compile e2e.test: %w", err)
	}
	return nil
}

// checkReferences returns an error if the tests use none of the images under its reference. The references change with releases of Kubernetes.
func checkReferences(ctx context.Context, tests, list string, r build.Recipe) error {
	cmd := exec.CommandContext(ctx, tests, "--list-images")
	cmd.Env = append(os.Environ(), "KUBE_TEST_REPO_LIST="+list)
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("list the images of the tests: %w", err)
	}
	used := strings.Fields(string(out))
	for _, img := range r.Images {
		if strings.HasPrefix(img.Ref, registry+"/") && !slices.Contains(used, img.Ref) {
			return fmt.Errorf("the tests use no image %s: compare recipe.go with test/utils/image/manifest.go of Kubernetes", img.Ref)
		}
	}
	return nil
}

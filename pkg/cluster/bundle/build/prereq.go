package build

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/hint"
)

type needs struct{ goTool, gcc, seccomp, apt bool }

// checkMachine returns an error if required tools are missing. The error lists all missing tools and their packages.
func checkMachine(ctx context.Context, n needs) error {
	var missing, packages []string
	want := func(ok bool, what string, debs ...string) {
		if !ok {
			missing = append(missing, what)
			packages = append(packages, debs...)
		}
	}
	have := func(program string) bool {
		_, err := exec.LookPath(program)
		return err == nil
	}
	if n.goTool {
		want(have("go"), "go", "golang-go")
	}
	if n.gcc {
		want(have("gcc"), "gcc", "gcc", "libc6-dev")
		if have("gcc") {
			want(staticLibrary(ctx, "libc.a"), "libc.a", "libc6-dev")
		}
	}
	if n.seccomp {
		want(have("pkg-config"), "pkg-config", "pkg-config")
		want(exec.CommandContext(ctx, "pkg-config", "--exists", "libseccomp").Run() == nil, "libseccomp's headers", "libseccomp-dev")
	}
	if n.apt {
		want(have("apt-get"), "apt-get", "apt")
		want(have("dpkg-deb"), "dpkg-deb", "dpkg")
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(packages)
	remedy := fmt.Sprintf("as root: apt-get install -y %s; or without compilers: paictl bundle fetch",
		strings.Join(slices.Compact(packages), " "))
	return hint.Errorf(remedy, "this machine doesn't have %s", strings.Join(missing, ", "))
}

// staticLibrary reports whether gcc finds a static library. For a missing library, gcc prints the name instead of a path.
func staticLibrary(ctx context.Context, name string) bool {
	out, err := exec.CommandContext(ctx, "gcc", "-print-file-name="+name).Output()
	return err == nil && filepath.IsAbs(strings.TrimSpace(string(out)))
}

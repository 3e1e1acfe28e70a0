package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// Folders, from the root of the repository.
const (
	sources   = "pkg/portal/web"
	built     = "pkg/portal/built"
	libraries = sources + "/libraries"
)

// modules are the files of the libraries by the names under which sources import them.
var modules = map[string]string{
	"preact":               "preact/preact.mjs",
	"preact/hooks":         "preact/hooks.mjs",
	"preact/jsx-runtime":   "preact/jsxRuntime.mjs",
	"@preact/signals":      "signals/signals.module.js",
	"@preact/signals-core": "signals-core/signals-core.module.js",
}

// targets are the oldest browsers for which the syntax is written.
var targets = []api.Engine{{Name: api.EngineChrome, Version: "109"}, {Name: api.EngineFirefox, Version: "115"}, {Name: api.EngineSafari, Version: "16.4"}}

// bundle returns the built files by name. The libraries are in a separate file, which a change of the pages leaves unchanged.
func bundle(root string) (map[string][]byte, error) {
	common := api.BuildOptions{
		AbsWorkingDir: root, Outdir: filepath.Join(root, built), Bundle: true, Format: api.FormatESModule, Engines: targets,
		Charset: api.CharsetUTF8, LegalComments: api.LegalCommentsNone, LogLevel: api.LogLevelSilent, TsconfigRaw: `{}`,
	}
	one := common
	one.EntryPointsAdvanced = []api.EntryPoint{{InputPath: sources + "/library.ts", OutputPath: "library"}}
	one.MinifyWhitespace, one.MinifySyntax, one.MinifyIdentifiers = true, true, true
	one.Plugins = []api.Plugin{resolve(func(name string) api.OnResolveResult {
		return api.OnResolveResult{Path: filepath.Join(root, libraries, modules[name])}
	})}
	// The pages are not minified: a commit then contains only the lines that changed.
	two := common
	two.EntryPointsAdvanced = []api.EntryPoint{{InputPath: sources + "/src/main.tsx", OutputPath: "app"}, {InputPath: sources + "/style.css", OutputPath: "app"}}
	two.JSX, two.JSXImportSource = api.JSXAutomatic, "preact"
	two.Plugins = []api.Plugin{resolve(func(string) api.OnResolveResult {
		return api.OnResolveResult{Path: "./library.js", External: true}
	})}
	// The theme is set by a script that runs before the page is drawn.
	three := common
	three.EntryPointsAdvanced, three.Format = []api.EntryPoint{{InputPath: sources + "/src/theme.ts", OutputPath: "theme"}}, api.FormatIIFE
	icon, err := os.ReadFile(filepath.Join(root, sources, "icon.svg"))
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{"icon.svg": icon}
	for _, o := range []api.BuildOptions{one, two, three} {
		r := api.Build(o)
		var errs []error
		for _, m := range append(r.Errors, r.Warnings...) {
			at := ""
			if m.Location != nil {
				at = fmt.Sprintf("%s:%d: ", m.Location.File, m.Location.Line)
			}
			errs = append(errs, errors.New(at+m.Text))
		}
		if len(errs) > 0 {
			return nil, errors.Join(errs...)
		}
		for _, f := range r.OutputFiles {
			out[filepath.Base(f.Path)] = f.Contents
		}
	}
	return out, nil
}

// resolve finds the files of the libraries, and refuses all other packages.
func resolve(library func(name string) api.OnResolveResult) api.Plugin {
	return api.Plugin{Name: "libraries", Setup: func(b api.PluginBuild) {
		b.OnResolve(api.OnResolveOptions{Filter: `^[^./]`}, func(a api.OnResolveArgs) (api.OnResolveResult, error) {
			switch {
			case modules[a.Path] != "":
				return library(a.Path), nil
			case a.Kind == api.ResolveEntryPoint || strings.HasPrefix(a.Path, "data:"):
				return api.OnResolveResult{}, nil
			}
			return api.OnResolveResult{}, fmt.Errorf("%s is not a library of the portal: add it to hack/portal and to %s/package.json", a.Path, sources)
		})
	}}
}

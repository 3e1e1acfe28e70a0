package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// These are folders, relative to the root of the repository.
const (
	sources   = "pkg/portal/web"
	built     = "pkg/portal/built"
	libraries = sources + "/libraries"
)

// modules maps the names that the sources import to files of the libraries.
var modules = map[string]string{
	"preact":               "preact/preact.mjs",
	"preact/hooks":         "preact/hooks.mjs",
	"preact/jsx-runtime":   "preact/jsxRuntime.mjs",
	"@preact/signals":      "signals/signals.module.js",
	"@preact/signals-core": "signals-core/signals-core.module.js",

	"@codemirror/autocomplete":   "codemirror-autocomplete/index.js",
	"@codemirror/commands":       "codemirror-commands/index.js",
	"@codemirror/lang-yaml":      "codemirror-lang-yaml/index.js",
	"@codemirror/language":       "codemirror-language/index.js",
	"@codemirror/lint":           "codemirror-lint/index.js",
	"@codemirror/search":         "codemirror-search/index.js",
	"@codemirror/state":          "codemirror-state/index.js",
	"@codemirror/streamparser":   "codemirror-streamparser/index.js",
	"@codemirror/view":           "codemirror-view/index.js",
	"@lezer/common":              "lezer-common/index.js",
	"@lezer/highlight":           "lezer-highlight/index.js",
	"@lezer/lr":                  "lezer-lr/index.js",
	"@lezer/yaml":                "lezer-yaml/index.js",
	"@marijn/find-cluster-break": "find-cluster-break/index.js",
	"crelt":                      "crelt/index.js",
	"style-mod":                  "style-mod/style-mod.js",
	"uplot":                      "uplot/uPlot.esm.js",
	"uplot/dist/uPlot.min.css":   "uplot/uPlot.min.css",
	"w3c-keyname":                "w3c-keyname/index.js",

	"@xterm/xterm":               "xterm/xterm.mjs",
	"@xterm/xterm/css/xterm.css": "xterm/xterm.css",
	"@xterm/addon-fit":           "xterm-addon-fit/addon-fit.mjs",
}

// adapted lists changes to files of libraries that are necessary because of the content security policy. The policy forbids style elements and the
// attribute style, but allows rules and declarations that a script sets.
var adapted = map[string][]change{
	// Without this change, the library uses adopted style sheets only below a shadow root.
	"style-mod/style-mod.js": {{"!root.head && root.adoptedStyleSheets", "root.adoptedStyleSheets", 1}},
	"xterm/xterm.mjs": {
		{`createElement("style")`, `createElement("portal-style")`, 3}, // terminal.ts defines it
		{"t.setAttribute(\"style\",`${t.getAttribute(\"style\")||\"\"}${e};`)", `t.style.cssText+=e+";"`, 1},
	},
}

// change replaces a text with another text. The text must occur the given number of times in the file.
type change struct {
	from, to string
	times    int
}

// targets lists the oldest browsers that the built files support.
var targets = []api.Engine{{Name: api.EngineChrome, Version: "109"}, {Name: api.EngineFirefox, Version: "115"}, {Name: api.EngineSafari, Version: "16.4"}}

// bundle returns the built files by name. The libraries that all pages use are in a separate file, so that a change to the pages doesn't change it.
// The editor, the terminal, the charts, and the code that packs folders are in one file each. Pages load such a file when they need it.
func bundle(root string) (map[string][]byte, error) {
	common := api.BuildOptions{
		AbsWorkingDir: root, Outdir: filepath.Join(root, built), Bundle: true, Format: api.FormatESModule, Engines: targets,
		Charset: api.CharsetUTF8, LegalComments: api.LegalCommentsNone, LogLevel: api.LogLevelSilent, TsconfigRaw: `{}`,
	}
	one := common
	for _, name := range []string{"library", "editor", "terminal", "chart", "code"} {
		one.EntryPointsAdvanced = append(one.EntryPointsAdvanced, api.EntryPoint{InputPath: sources + "/" + name + ".ts", OutputPath: name})
	}
	one.MinifyWhitespace, one.MinifySyntax, one.MinifyIdentifiers = true, true, true
	one.Loader = map[string]api.Loader{".css": api.LoaderText}
	one.Plugins = []api.Plugin{resolve(func(name string) api.OnResolveResult {
		return api.OnResolveResult{Path: filepath.Join(root, libraries, modules[name])}
	}), adapt(root)}
	// The pages aren't minified, so that a commit contains only the lines that have changed.
	two := common
	two.EntryPointsAdvanced = []api.EntryPoint{
		{InputPath: sources + "/src/main.tsx", OutputPath: "app"},
		// Pages load these files only when they need them.
		{InputPath: sources + "/src/actions.tsx", OutputPath: "actions"},
		{InputPath: sources + "/src/admin.tsx", OutputPath: "admin"},
		{InputPath: sources + "/src/jobform.tsx", OutputPath: "jobform"},
		{InputPath: sources + "/src/logs.tsx", OutputPath: "logs"},
		{InputPath: sources + "/src/parent.tsx", OutputPath: "parent"},
		{InputPath: sources + "/style.css", OutputPath: "app"},
	}
	two.Splitting, two.ChunkNames = true, chunk+"[hash]" // the code that several of them need
	two.JSX, two.JSXImportSource = api.JSXAutomatic, "preact"
	two.Plugins = []api.Plugin{resolve(func(string) api.OnResolveResult {
		return api.OnResolveResult{Path: "./library.js", External: true}
	})}
	// A script sets the theme before the browser draws the page.
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
	rename(out)
	return out, nil
}

// chunk is the prefix of the names of files with code that several pages use.
const chunk = "chunk-"

// rename gives the files with shared code names that don't depend on their contents. The largest file becomes shared.js, and the next shared-2.js.
func rename(files map[string][]byte) {
	var chunks []string
	for name := range files {
		if strings.HasPrefix(name, chunk) {
			chunks = append(chunks, name)
		}
	}
	slices.SortFunc(chunks, func(a, b string) int { return cmp.Or(len(files[b])-len(files[a]), strings.Compare(a, b)) })
	for i, from := range chunks {
		to := "shared.js"
		if i > 0 {
			to = fmt.Sprintf("shared-%d.js", i+1)
		}
		files[to] = files[from]
		delete(files, from)
		for name, data := range files {
			files[name] = bytes.ReplaceAll(data, []byte(from), []byte(to))
		}
	}
}

// resolve returns a plugin that resolves imports to the files of the libraries, and rejects all other packages.
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

// adapt returns a plugin that applies the changes in adapted. The build fails if a file doesn't contain a text that is to be replaced.
func adapt(root string) api.Plugin {
	return api.Plugin{Name: "adapted", Setup: func(b api.PluginBuild) {
		for name, changes := range adapted {
			path := filepath.Join(root, libraries, name)
			b.OnLoad(api.OnLoadOptions{Filter: "^" + regexp.QuoteMeta(path) + "$"}, func(api.OnLoadArgs) (api.OnLoadResult, error) {
				data, err := os.ReadFile(path) //nolint:gosec // a file of the repository
				if err != nil {
					return api.OnLoadResult{}, err
				}
				text := string(data)
				for _, c := range changes {
					if n := strings.Count(text, c.from); n != c.times {
						return api.OnLoadResult{}, fmt.Errorf("%s has %q %d times, not %d: check how this version styles its elements, and change hack/portal", name, c.from, n, c.times)
					}
					text = strings.ReplaceAll(text, c.from, c.to)
				}
				return api.OnLoadResult{Contents: &text, Loader: api.LoaderJS}, nil
			})
		}
	}}
}

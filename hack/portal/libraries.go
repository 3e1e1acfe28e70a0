package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
)

// library is an npm package, with the files that the portal uses. files maps the names of files in the package to their names in the folder of
// libraries.
type library struct {
	name, folder string
	files        map[string]string
}

var fetched = []library{
	{"preact", "preact", map[string]string{"dist/preact.mjs": "preact.mjs", "hooks/dist/hooks.mjs": "hooks.mjs", "jsx-runtime/dist/jsxRuntime.mjs": "jsxRuntime.mjs", "LICENSE": "LICENSE"}},
	{"@preact/signals", "signals", map[string]string{"dist/signals.module.js": "signals.module.js", "LICENSE": "LICENSE"}},
	{"@preact/signals-core", "signals-core", map[string]string{"dist/signals-core.module.js": "signals-core.module.js", "LICENSE": "LICENSE"}},
	inOneFile("@codemirror/autocomplete", "codemirror-autocomplete", "dist/index.js"),
	inOneFile("@codemirror/commands", "codemirror-commands", "dist/index.js"),
	inOneFile("@codemirror/lang-yaml", "codemirror-lang-yaml", "dist/index.js"),
	inOneFile("@codemirror/language", "codemirror-language", "dist/index.js"),
	inOneFile("@codemirror/lint", "codemirror-lint", "dist/index.js"),
	inOneFile("@codemirror/search", "codemirror-search", "dist/index.js"),
	inOneFile("@codemirror/state", "codemirror-state", "dist/index.js"),
	inOneFile("@codemirror/streamparser", "codemirror-streamparser", "dist/index.js"),
	inOneFile("@codemirror/view", "codemirror-view", "dist/index.js"),
	inOneFile("@lezer/common", "lezer-common", "dist/index.js"),
	inOneFile("@lezer/highlight", "lezer-highlight", "dist/index.js"),
	inOneFile("@lezer/lr", "lezer-lr", "dist/index.js"),
	inOneFile("@lezer/yaml", "lezer-yaml", "dist/index.js"),
	inOneFile("@marijn/find-cluster-break", "find-cluster-break", "src/index.js"),
	inOneFile("crelt", "crelt", "index.js"),
	inOneFile("style-mod", "style-mod", "src/style-mod.js"),
	{"uplot", "uplot", map[string]string{"dist/uPlot.esm.js": "uPlot.esm.js", "dist/uPlot.min.css": "uPlot.min.css", "LICENSE": "LICENSE"}},
	inOneFile("w3c-keyname", "w3c-keyname", "index.js"),
	{"@xterm/xterm", "xterm", map[string]string{"lib/xterm.mjs": "xterm.mjs", "css/xterm.css": "xterm.css", "LICENSE": "LICENSE"}},
	inOneFile("@xterm/addon-fit", "xterm-addon-fit", "lib/addon-fit.mjs"),
}

// inOneFile returns a library that consists of one file and its license.
func inOneFile(name, folder, file string) library {
	return library{name, folder, map[string]string{file: path.Base(file), "LICENSE": "LICENSE"}}
}

// entry describes a library in the manifest.
type entry struct {
	Name      string `json:"name"`
	Version   string `json:"version"`
	License   string `json:"license"`
	Integrity string `json:"integrity"`
	// Files holds the SHA-256 checksum of each file, in hexadecimal.
	Files map[string]string `json:"files"`
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// fetch downloads the packages with npm, which verifies them with the lock file, and copies the files that the portal uses. It doesn't run scripts
// of the packages.
func fetch(root string) error {
	temp, err := os.MkdirTemp("", "portal-libraries")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	var lock []byte
	for _, name := range []string{"package.json", "package-lock.json"} {
		if lock, err = os.ReadFile(filepath.Join(root, sources, name)); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(temp, name), lock, 0o600); err != nil {
			return err
		}
	}
	npm := exec.Command("npm", "ci", "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund")
	npm.Dir, npm.Stdout, npm.Stderr = temp, os.Stderr, os.Stderr
	if err := npm.Run(); err != nil {
		return fmt.Errorf("npm ci: %w", err)
	}
	pinned := struct {
		Packages map[string]entry `json:"packages"`
	}{}
	if err := json.Unmarshal(lock, &pinned); err != nil {
		return err
	}
	var manifest []entry
	for _, l := range fetched {
		e := pinned.Packages["node_modules/"+l.name]
		e.Name, e.Files = l.name, map[string]string{}
		if e.Integrity == "" || e.License == "" {
			return fmt.Errorf("package-lock.json has no integrity or no license of %s", l.name)
		}
		folder := filepath.Join(root, libraries, l.folder)
		if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // everyone may read it
			return err
		}
		for from, to := range l.files {
			data, err := os.ReadFile(filepath.Join(temp, "node_modules", filepath.FromSlash(l.name), filepath.FromSlash(from)))
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(folder, to), data, 0o644); err != nil { //nolint:gosec // everyone may read it
				return err
			}
			e.Files[l.folder+"/"+to] = sum(data)
		}
		manifest = append(manifest, e)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetIndent("", "  ")
	if err := enc.Encode(manifest); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, libraries, "manifest.json"), out.Bytes(), 0o644) //nolint:gosec // everyone may read it
}

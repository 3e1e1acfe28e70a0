package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The built files are committed, so that a build of paictl needs no bundler. They must match the sources.
func TestTheBuiltFilesAreThoseOfTheSources(t *testing.T) {
	root, err := root()
	if err != nil {
		t.Fatal(err)
	}
	want, err := bundle(root)
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadDir(filepath.Join(root, built))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range have {
		data, err := os.ReadFile(filepath.Join(root, built, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if string(want[f.Name()]) != string(data) {
			t.Errorf("%s/%s isn't the one of the sources: run make portal", built, f.Name())
		}
		delete(want, f.Name())
	}
	for name := range want {
		t.Errorf("%s/%s is missing: run make portal", built, name)
	}
}

func TestTheLibrariesAreThoseOfTheLockFile(t *testing.T) {
	root, err := root()
	if err != nil {
		t.Fatal(err)
	}
	lock, manifest := struct{ Packages map[string]entry }{}, []entry{}
	for name, to := range map[string]any{"package-lock.json": &lock, "libraries/manifest.json": &manifest} {
		data, err := os.ReadFile(filepath.Join(root, sources, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, to); err != nil {
			t.Fatal(name, err)
		}
	}
	if len(manifest) != len(fetched) {
		t.Errorf("the manifest has %d libraries of %d: run make portal-libraries", len(manifest), len(fetched))
	}
	for _, e := range manifest {
		if pinned := lock.Packages["node_modules/"+e.Name]; pinned.Version != e.Version || pinned.Integrity != e.Integrity || e.License == "" {
			t.Errorf("%s %s isn't the one of package-lock.json: run make portal-libraries", e.Name, e.Version)
		}
		for f, want := range e.Files {
			data, err := os.ReadFile(filepath.Join(root, libraries, f))
			if err != nil {
				t.Error(err)
			} else if sum(data) != want {
				t.Errorf("%s isn't the file of %s %s: run make portal-libraries", f, e.Name, e.Version)
			}
		}
	}
}

// A new version of a library may add its styles in another place, which the content policy forbids.
func TestALibraryWithoutTheTextsToChangeIsRefused(t *testing.T) {
	root, err := root()
	if err != nil {
		t.Fatal(err)
	}
	before := adapted
	t.Cleanup(func() { adapted = before })
	adapted = map[string][]change{"style-mod/style-mod.js": {{"another text", "", 1}}}
	if _, err := bundle(root); err == nil || !strings.Contains(err.Error(), `style-mod/style-mod.js has "another text" 0 times, not 1`) {
		t.Error(err)
	}
}

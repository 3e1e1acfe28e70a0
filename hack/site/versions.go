package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// version is a version of the repository whose documents the site contains.
type version struct {
	Name   string // of the release, or "unreleased"
	Folder string // below the site; "" for the checkout
	Ref    string // its name at the forge
	root   string // folder of its files
	made   string // commit and date, for the foot of each page
}

type versionLink struct {
	Name    string `json:"name"`
	Href    string `json:"href"`
	Current bool   `json:"current"`
}

// release matches the names of tags of releases.
var release = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

// unreleased is the name of the version in the checkout.
const unreleased = "unreleased"

// versions returns the checkout, followed by all releases, the newest first. The files of the releases are unpacked below work.
func versions(ctx context.Context, root, work string, stderr io.Writer) ([]version, error) {
	out := []version{{Name: unreleased, Ref: "main", root: root}}
	tags, err := command(ctx, root, stderr, "git", "-c", "versionsort.suffix=-", "tag", "--list", "--sort=-version:refname", "v*")
	if err != nil {
		return nil, err
	}
	if out[0].made, err = made(ctx, root, "HEAD", stderr); err != nil {
		return nil, err
	}
	for _, tag := range strings.Fields(tags) {
		if !release.MatchString(tag) {
			continue
		}
		v := version{Name: tag, Folder: tag, Ref: tag, root: filepath.Join(work, tag)}
		if v.made, err = made(ctx, root, tag, stderr); err != nil {
			return nil, err
		}
		if err := unpack(ctx, root, tag, v.root, stderr); err != nil {
			return nil, fmt.Errorf("read the files of %s: %w", tag, err)
		}
		out = append(out, v)
	}
	return out, nil
}

func made(ctx context.Context, root, ref string, stderr io.Writer) (string, error) {
	said, err := command(ctx, root, stderr, "git", "log", "-1", "--format=%h, %cs", ref, "--")
	return strings.TrimSpace(said), err
}

// unpack writes the files of a commit to a folder.
func unpack(ctx context.Context, root, ref, dir string, stderr io.Writer) error {
	cmd := exec.CommandContext(ctx, "git", "archive", "--format=tar", ref)
	cmd.Dir, cmd.Stderr = root, stderr
	data, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("git archive: %w", err)
	}
	files := tar.NewReader(bytes.NewReader(data))
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg || !filepath.IsLocal(h.Name) {
			continue
		}
		name := filepath.Join(dir, filepath.FromSlash(h.Name))
		text, err := io.ReadAll(files)
		if err != nil {
			return err
		}
		if err := put(name, text); err != nil {
			return err
		}
	}
}

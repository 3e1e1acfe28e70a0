package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"aead.dev/minisign"
)

const (
	listFile      = "checksums.txt"
	signatureFile = listFile + ".minisig"
)

// keys reads the keys. The public key becomes part of paictl, so it must be known before the build begins.
func (b *build) keys() error {
	if b.publicKey == "" {
		if b.snapshot && b.secretKey == "" {
			fmt.Fprintln(b.out, "without --public-key: this paictl can't verify its release")
			return nil
		}
		return errors.New("--public-key is missing: paictl and install.sh verify the release with it")
	}
	key, err := minisign.PublicKeyFromFile(b.publicKey)
	if err != nil {
		return fmt.Errorf("read the public key %s: %w", b.publicKey, err)
	}
	b.public = &key
	if b.secretKey == "" {
		return nil
	}
	secret, err := readSecret(b.secretKey, b.password)
	if err != nil {
		return err
	}
	if public, ok := secret.Public().(minisign.PublicKey); !ok || !public.Equal(key) {
		return fmt.Errorf("%s is not the secret key of %s", b.secretKey, b.publicKey)
	}
	b.secret = &secret
	return nil
}

// readSecret reads a secret key. Keys of minisign -G are encrypted with a password; keys of minisign -G -W aren't encrypted.
func readSecret(file, password string) (minisign.PrivateKey, error) {
	var key minisign.PrivateKey
	data, err := os.ReadFile(file)
	if err != nil {
		return key, fmt.Errorf("read the secret key: %w", err)
	}
	if !minisign.IsEncrypted(data) {
		if err := key.UnmarshalText(data); err != nil {
			return key, fmt.Errorf("read the secret key %s: %w", file, err)
		}
		return key, nil
	}
	if password == "" {
		return key, fmt.Errorf("the secret key %s is encrypted: give its password by --password-file", file)
	}
	if key, err = minisign.DecryptKey(password, data); err != nil {
		return key, fmt.Errorf("decrypt the secret key %s: %w", file, err)
	}
	return key, nil
}

// released describes a file of the release.
type released struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// finish writes the files that describe the other files: release.json, the provenance, the checksums and their signature.
func (b *build) finish(ctx context.Context) error {
	files, err := b.files()
	if err != nil {
		return err
	}
	goVersion, err := b.output(ctx, "go", "env", "GOVERSION")
	if err != nil {
		return err
	}
	manifest := map[string]any{"version": b.version, "commit": b.commit, "time": b.when.Format(time.RFC3339), "go": goVersion, "files": files}
	if err := b.json("release.json", "manifest", manifest); err != nil {
		return err
	}
	if err := b.json("provenance.intoto.json", "provenance", provenance(b, files, goVersion)); err != nil {
		return err
	}
	if files, err = b.files(); err != nil {
		return err
	}
	var list bytes.Buffer
	var total int64
	for _, f := range files {
		fmt.Fprintf(&list, "%s  %s\n", f.SHA256, f.Name)
		total += f.Size
	}
	if err := os.WriteFile(filepath.Join(b.dir, listFile), list.Bytes(), 0o644); err != nil {
		return err
	}
	if err := b.sign(list.Bytes()); err != nil {
		return err
	}
	fmt.Fprintf(b.out, "%s: %d files, %.1f MB, in %s\n", b.version, len(files)+1, float64(total)/1e6, b.dir)
	return nil
}

// files returns the descriptions of the files that have been created so far, sorted by name.
func (b *build) files() ([]released, error) {
	var out []released
	for _, name := range slices.Sorted(maps.Keys(b.made)) {
		f, err := os.Open(filepath.Join(b.dir, name))
		if err != nil {
			return nil, err
		}
		h := sha256.New()
		size, err := io.Copy(h, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		out = append(out, released{Name: name, Kind: b.made[name], Size: size, SHA256: hex.EncodeToString(h.Sum(nil))})
	}
	return out, nil
}

func (b *build) json(name, kind string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(b.file(name, kind), append(data, '\n'), 0o644)
}

// comment returns the comment that is signed, in the format that pkg/release parses.
func comment(version string, when time.Time) string {
	return fmt.Sprintf("timestamp:%d\tfile:%s\tpaictl:%s", when.Unix(), listFile, version)
}

// sign signs the list of checksums. Ed25519 uses no random numbers, so the same list and key result in the same signature.
func (b *build) sign(list []byte) error {
	if b.secret == nil {
		fmt.Fprintf(b.out, "not signed: run minisign -S -s KEY -m %s -t '%s'\n", filepath.Join(b.dir, listFile), comment(b.version, b.when))
		return nil
	}
	r := minisign.NewReader(bytes.NewReader(list))
	if _, err := io.Copy(io.Discard, r); err != nil {
		return err
	}
	signature := r.SignWithComments(*b.secret, comment(b.version, b.when), "release of paictl")
	return os.WriteFile(filepath.Join(b.dir, signatureFile), signature, 0o644)
}

// provenance returns a statement in the format of SLSA 1.0 about how the files were built. checksums.txt contains its checksum, so the signature of
// the list covers the statement.
func provenance(b *build, files []released, goVersion string) any {
	type digest map[string]string
	type resource struct {
		Name   string `json:"name,omitempty"`
		URI    string `json:"uri,omitempty"`
		Digest digest `json:"digest,omitempty"`
	}
	var subjects []resource
	for _, f := range files {
		subjects = append(subjects, resource{Name: f.Name, Digest: digest{"sha256": f.SHA256}})
	}
	return map[string]any{
		"_type": "https://in-toto.io/Statement/v1", "subject": subjects, "predicateType": "https://slsa.dev/provenance/v1",
		"predicate": map[string]any{
			"buildDefinition": map[string]any{
				"buildType":          "https://" + module + "/blob/main/docs/releases.md",
				"externalParameters": map[string]any{"version": b.version, "parts": b.only, "platforms": b.platforms, "snapshot": b.snapshot},
				"internalParameters": map[string]any{"go": goVersion, "host": runtime.GOOS + "/" + runtime.GOARCH},
				"resolvedDependencies": []resource{
					{URI: "git+https://" + module, Digest: digest{"gitCommit": b.commit}},
				},
			},
			"runDetails": map[string]any{"builder": map[string]any{"id": b.builder}},
		},
	}
}

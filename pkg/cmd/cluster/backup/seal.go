package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster/backup"
	"github.com/openpai/paictl/pkg/cmd/prompt"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
)

// sealFlags are the flags that determine how an archive is encrypted.
type sealFlags struct {
	Recipients     []string
	RecipientFiles []string
	PassphraseFile string
	Plain          bool
}

func (fl *sealFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringSliceVarP(&fl.Recipients, "recipient", "r", nil, "encrypt to this public `KEY` of age (age1...); repeat it for more")
	cmd.Flags().StringArrayVar(&fl.RecipientFiles, "recipients-file", nil, "encrypt to the public keys in this `FILE`, one a line")
	cmd.Flags().StringVar(&fl.PassphraseFile, "passphrase-file", "", "encrypt with the passphrase in this `FILE`, its first line")
	cmd.Flags().BoolVar(&fl.Plain, "insecure-plain", false, "don't encrypt: anyone who can read the file controls the cluster")
}

func (fl *sealFlags) check() error {
	ways := 0
	for _, given := range []bool{len(fl.Recipients)+len(fl.RecipientFiles) > 0, fl.PassphraseFile != "", fl.Plain} {
		if given {
			ways++
		}
	}
	if ways > 1 {
		return cmdutil.Usagef("--recipient, --passphrase-file and --insecure-plain exclude each other")
	}
	// Check the keys before the machines are queried.
	_, err := backup.Recipients(fl.Recipients, fl.RecipientFiles)
	return err
}

// seal returns how to encrypt the backup. It asks the user for a passphrase if no flag determines the encryption.
func (fl *sealFlags) seal(f *cmdutil.Factory) (backup.Seal, error) {
	switch {
	case fl.Plain:
		return backup.Seal{Plain: true}, nil
	case len(fl.Recipients)+len(fl.RecipientFiles) > 0:
		all, err := backup.Recipients(fl.Recipients, fl.RecipientFiles)
		return backup.Seal{Recipients: all}, err
	case fl.PassphraseFile != "":
		p, err := readPassphrase(fl.PassphraseFile)
		return backup.Seal{Passphrase: p}, err
	case !f.IO.CanPrompt():
		return backup.Seal{}, cmdutil.Usagef("a backup is encrypted, but there is no terminal to ask for a passphrase on: add --recipient or --passphrase-file")
	}
	person := &prompt.Person{IO: f.IO}
	first, err := person.AskSecret("Passphrase of the backup, without which no one can restore it")
	if err != nil {
		return backup.Seal{}, err
	}
	if !first.IsSet() {
		return backup.Seal{}, cmdutil.Usagef("the passphrase is empty")
	}
	again, err := person.AskSecret("The same passphrase again")
	if err != nil {
		return backup.Seal{}, err
	}
	if again.Reveal() != first.Reveal() {
		return backup.Seal{}, cmdutil.Usagef("the two passphrases differ")
	}
	return backup.Seal{Passphrase: first}, nil
}

func readPassphrase(file string) (secret.String, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", hint.Errorf("write the passphrase into its first line", "read the passphrase: %w", err)
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	line = bytes.TrimSuffix(line, []byte("\r"))
	if len(line) == 0 {
		return "", hint.Errorf("write the passphrase into its first line", "the first line of %s is empty", file)
	}
	return secret.String(line), nil
}

// keyFlags are the flags that determine how an archive is decrypted.
type keyFlags struct {
	Identities     []string
	PassphraseFile string
	Plain          bool
}

func (fl *keyFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVarP(&fl.Identities, "identity", "i", nil, "open it with the private keys of age in this `FILE`")
	cmd.Flags().BoolVar(&fl.Plain, "insecure-plain", false, "accept a backup that isn't encrypted, which anyone may have written")
	cmd.Flags().StringVar(&fl.PassphraseFile, "passphrase-file", "", "open it with the passphrase in this `FILE`, its first line")
}

// again returns the flags that decrypt the same archive in another command.
func (fl *keyFlags) again() string {
	var out string
	for _, file := range fl.Identities {
		out += " --identity " + hint.Quote(file)
	}
	if fl.PassphraseFile != "" {
		out += " --passphrase-file " + hint.Quote(fl.PassphraseFile)
	}
	if fl.Plain {
		out += " --insecure-plain"
	}
	return out
}

func (fl *keyFlags) keys(f *cmdutil.Factory) (backup.Keys, error) {
	k := backup.Keys{Plain: fl.Plain}
	var err error
	if k.Identities, err = backup.Identities(fl.Identities); err != nil {
		return k, err
	}
	switch {
	case fl.PassphraseFile != "":
		k.Passphrase = func() (secret.String, error) { return readPassphrase(fl.PassphraseFile) }
	case f.IO.CanPrompt():
		k.Passphrase = func() (secret.String, error) {
			return (&prompt.Person{IO: f.IO}).AskSecret("Passphrase of the backup")
		}
	}
	return k, nil
}

// archive is an archive that a command reads, with the flags to find and decrypt it.
type archive struct {
	Factory *cmdutil.Factory
	File    string
	Keys    *keyFlags
	Place   *placeFlags
}

// each reads an archive, and calls part for each of its parts. part may be nil. each also returns the manifest, and the size of the archive in
// bytes. Errors contain the name of the file.
func (a archive) each(ctx context.Context, part func(string, int64, io.Reader) error) (*backup.Manifest, int64, error) {
	keys, err := a.Keys.keys(a.Factory)
	if err != nil {
		return nil, 0, err
	}
	in, size, err := a.Place.openFile(ctx, a.Factory, a.File)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = in.Close() }() // nothing was written
	m, err := backup.Read(in, keys, part)
	switch {
	case ctx.Err() != nil:
		return nil, 0, context.Cause(ctx)
	case in.failed != nil: // the error about the archive is only a consequence of this one
		return nil, 0, fmt.Errorf("read %s: %w", a.File, in.failed)
	case errors.Is(err, backup.ErrNone):
		return nil, 0, hint.Errorf("backups are made with: paictl cluster backup", "%s: %w", a.File, err)
	case err != nil:
		return nil, 0, fmt.Errorf("%s: %w", a.File, err)
	}
	return m, size, nil
}

package user

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/password"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// ImportOptions are the options of "paictl user import".
type ImportOptions struct {
	Factory    *cmdutil.Factory
	Connection connection.Flags
	File       string
	Passwords  string
	DryRun     bool
}

// NewCmdImport returns "paictl user import".
func NewCmdImport(f *cmdutil.Factory) *cobra.Command {
	opts := &ImportOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "import FILE.csv",
		Short: "Add many people from a CSV file",
		Long: `The first line names the columns: name, and any of email, displayName, groups, password. Groups are separated by spaces.
A hyphen as FILE reads stdin.

Everything is checked before the first person is added: each error names its line and field. Existing people are left
as they are, so the same file can be imported again after a failure.

People without a password in the file can't sign in with one until "paictl user passwd". With --passwords FILE, paictl makes
passwords for them and writes them into that file, which only you can read.`,
		Example: `  paictl user import people.csv --dry-run
  paictl user import people.csv --passwords new-passwords.csv`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.File = args[0]
			return importRun(cmd.Context(), opts)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"csv"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	cmd.Flags().StringVar(&opts.Passwords, "passwords", "", "make passwords for people without one, and write them into this new file")
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "only check the file")
	_ = cmd.MarkFlagFilename("passwords")
	opts.Connection.AddFlags(f, cmd)
	return cmd
}

// maxImport is the maximum size of a file in bytes. A file of this size contains more users than any cluster has.
const maxImport = 16 << 20

func importRun(ctx context.Context, opts *ImportOptions) error {
	data, err := opts.read()
	if err != nil {
		return err
	}
	rows, err := parseCSV(opts.File, data)
	if err != nil {
		return err
	}
	if opts.Passwords != "" {
		if _, err := os.Lstat(opts.Passwords); err == nil {
			return hint.Errorf("name a new file", "%s already exists: it may have passwords of an earlier import", opts.Passwords)
		}
	}
	p, err := Open(opts.Factory, opts.Connection)
	if err != nil {
		return err
	}
	todo, known, err := opts.check(ctx, p, rows)
	if err != nil {
		return err
	}
	for _, name := range known {
		fmt.Fprintf(opts.Factory.IO.Err, "%s already exists, and stays as is.\n", name)
	}
	if opts.DryRun {
		fmt.Fprintf(opts.Factory.IO.Out, "%s would be added.\n", plural.Of(len(todo), "person"))
		return nil
	}
	if err := opts.makePasswords(todo); err != nil {
		return err
	}
	for i, r := range todo {
		if _, err := p.Add(ctx, r.user); err != nil {
			err = fmt.Errorf("%s: line %d: %w", opts.File, r.line, err)
			return hint.Wrap(err, fmt.Sprintf("%d of %d are added; import the same file again for the others", i, len(todo)))
		}
	}
	fmt.Fprintf(opts.Factory.IO.Out, "%s added.\n", plural.Of(len(todo), "person"))
	return nil
}

func (opts *ImportOptions) read() ([]byte, error) {
	from := opts.Factory.IO.In
	if opts.File != "-" {
		f, err := os.Open(opts.File)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		from = f
	}
	data, err := io.ReadAll(io.LimitReader(from, maxImport+1))
	if err == nil && len(data) > maxImport {
		err = fmt.Errorf("%s is larger than %d MiB", opts.File, maxImport>>20)
	}
	return data, err
}

// row is one row of a file, which describes one user.
type row struct {
	line int
	user people.NewUser
}

// columns maps the names of the columns that a file may have to functions that set the corresponding field.
var columns = map[string]func(*people.NewUser, string){
	"name":        func(n *people.NewUser, s string) { n.Name = s },
	"email":       func(n *people.NewUser, s string) { n.Email = s },
	"displayName": func(n *people.NewUser, s string) { n.DisplayName = s },
	"groups":      func(n *people.NewUser, s string) { n.Groups = strings.Fields(s) },
	"password":    func(n *people.NewUser, s string) { n.Password = secret.String(s) },
}

// parseCSV parses a file strictly. Unknown columns and other mistakes are errors with the number of the line. Errors never contain a password.
func parseCSV(file string, data []byte) ([]row, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // as spreadsheets begin a file
	r := csv.NewReader(bytes.NewReader(data))
	r.FieldsPerRecord = -1
	head, err := r.Read()
	if errors.Is(err, io.EOF) {
		return nil, hint.Errorf("begin it with: name,email,groups", "%s is empty", file)
	}
	if err != nil {
		return nil, csvError(file, err)
	}
	if err := checkHead(file, head); err != nil {
		return nil, err
	}
	var out []row
	for {
		fields, err := r.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, csvError(file, err)
		}
		line, _ := r.FieldPos(0)
		if len(fields) != len(head) {
			return nil, hint.Errorf("write a value for each column, or nothing between two commas", "%s: line %d: it has %s, and the first line names %d", file, line, plural.Of(len(fields), "field"), len(head))
		}
		one := row{line: line}
		for i, text := range fields {
			if head[i] != "password" {
				text = strings.TrimSpace(text)
			}
			if text != "" {
				columns[head[i]](&one.user, text)
			}
		}
		out = append(out, one)
	}
}

func checkHead(file string, head []string) error {
	for i, name := range head {
		head[i] = strings.TrimSpace(name)
		switch {
		case columns[head[i]] == nil:
			if len(head) == 1 && strings.ContainsAny(name, ";\t") {
				return hint.Errorf("separate the columns by commas: in a spreadsheet, save as CSV with the separator \",\"", "%s: line 1: the columns are separated by %q", file, name[strings.IndexAny(name, ";\t")])
			}
			return hint.Errorf("the columns are: name, email, displayName, groups, password", "%s: line 1: there is no column %q", file, head[i])
		case slices.Contains(head[:i], head[i]):
			return hint.Errorf("remove one of the two", "%s: line 1: the column %s occurs twice", file, head[i])
		}
	}
	if !slices.Contains(head, "name") {
		return hint.Errorf("begin it with: name,email,groups", "%s: line 1: there is no column name", file)
	}
	return nil
}

// csvError converts an error of encoding/csv to an error that doesn't contain text of the file.
func csvError(file string, err error) error {
	if p, ok := errors.AsType[*csv.ParseError](err); ok {
		return hint.Errorf("write fields with quotes or commas as \"...\", and a quote in them twice", "%s: line %d, column %d: %w", file, p.Line, p.Column, p.Err)
	}
	return fmt.Errorf("%s: %w", file, err)
}

// check finds all mistakes, and returns the new users and the names of users who already exist.
func (opts *ImportOptions) check(ctx context.Context, p *People, rows []row) (todo []row, known []string, err error) {
	users := make([]people.NewUser, len(rows))
	for i := range rows {
		users[i] = rows[i].user
		if users[i].Groups == nil {
			users[i].Groups = []string{v1.GroupDefault}
		}
	}
	wrong := p.Check(ctx, users)
	if len(wrong) != len(users) {
		return nil, nil, errors.Join(wrong...)
	}
	there, err := p.Users(ctx)
	if err != nil {
		return nil, nil, err
	}
	seen := map[string]int{}
	var all []error
	for i := range rows {
		name := rows[i].user.Name
		if before := seen[v1.FoldName(name)]; before != 0 && wrong[i] == nil {
			wrong[i] = fmt.Errorf("name: %s is in line %d, too", name, before)
		}
		seen[v1.FoldName(name)] = rows[i].line
		switch {
		case wrong[i] == nil:
			todo = append(todo, rows[i])
		case errors.Is(wrong[i], people.ErrExists) && slices.ContainsFunc(there, func(u User) bool { return u.Name == name }):
			known = append(known, name)
		default:
			all = append(all, fmt.Errorf("%s: line %d: %w", opts.File, rows[i].line, wrong[i]))
		}
	}
	if len(all) > 0 {
		return nil, nil, hint.Wrap(errors.Join(all...), "correct the file; no person was added")
	}
	return todo, known, nil
}

// makePasswords generates the missing passwords, and writes them to a file before the first user is added. If the run is killed, no password is
// lost.
func (opts *ImportOptions) makePasswords(todo []row) error {
	if opts.Passwords == "" {
		return nil
	}
	var text bytes.Buffer
	w := csv.NewWriter(&text)
	_ = w.Write([]string{"name", "password"})
	for i := range todo {
		if !todo[i].user.Password.IsSet() {
			todo[i].user.Password = password.New()
			_ = w.Write([]string{todo[i].user.Name, todo[i].user.Password.Reveal()})
		}
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return err
	}
	if err := renameio.WriteFile(opts.Passwords, text.Bytes(), 0o600); err != nil {
		return fmt.Errorf("write the passwords: %w", err)
	}
	return nil
}

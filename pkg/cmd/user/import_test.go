package user

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/hint"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

func TestAFileOfASpreadsheetIsRead(t *testing.T) {
	rows, err := parseCSV("people.csv", []byte("\ufeffname,groups,displayName,password\r\n ann , vision  nlp ,\"Miller, Ann\",\" sp ace \"\r\n\r\nbob,,,\r\n"))
	require.NoError(t, err)
	require.Len(t, rows, 2)
	assert.Equal(t, "ann", rows[0].user.Name)
	assert.Equal(t, []string{"vision", "nlp"}, rows[0].user.Groups)
	assert.Equal(t, "Miller, Ann", rows[0].user.DisplayName)
	assert.Equal(t, " sp ace ", rows[0].user.Password.Reveal(), "spaces of a password are part of it")
	assert.Equal(t, 4, rows[1].line)
	assert.Nil(t, rows[1].user.Groups)
}

func TestAMistakeInAFileOfASpreadsheetHasARemedy(t *testing.T) {
	for text, want := range map[string]string{
		"name;email\nann;a@b\n": `f: line 1: the columns are separated by ';'`,
		"name\temail\n":         `f: line 1: the columns are separated by '\t'`,
		"name,name\n":           "f: line 1: the column name occurs twice",
		"name,email\nann\n":     "f: line 2: it has 1 field, and the first line names 2",
	} {
		_, err := parseCSV("f", []byte(text))
		require.EqualError(t, err, want)
		assert.NotEmpty(t, hint.Of(err), text)
	}
}

func FuzzParseCSV(f *testing.F) {
	f.Add("name,email\nann,ann@example.org\n")
	f.Add("name,password\n\"a\"\"b\",\"x\ny\"\n")
	f.Add("\ufeffname\n")
	f.Add("name,name\n")
	f.Fuzz(func(t *testing.T, text string) {
		rows, err := parseCSV("f", []byte(text))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f") {
				t.Fatalf("the error doesn't name the file: %v", err)
			}
			return
		}
		for _, r := range rows {
			if r.line < 2 {
				t.Fatalf("a person in line %d", r.line)
			}
			_ = v1.ObjectName(r.user.Name)
		}
	})
}

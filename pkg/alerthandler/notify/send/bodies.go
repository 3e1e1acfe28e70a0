package send

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/openpai/paictl/pkg/alerthandler/notify"
)

// request returns the address and the body of the request for a message. It puts user text into fields that the chat doesn't interpret. So the name
// of a job can't contain a link or mention everyone.
func (w *Webhook) request(m *notify.Message) (address string, body []byte, err error) {
	address = w.c.SecretURL.Reveal()
	var content map[string]any
	switch w.c.Type {
	case notify.TypeSlack:
		var blocks []any
		for _, text := range append([]string{m.Subject}, pieces(m.Text, mostSlack)...) {
			blocks = append(blocks, map[string]any{"type": "section", "text": map[string]any{"type": "plain_text", "text": text, "emoji": false}})
		}
		content = map[string]any{"blocks": blocks, "text": escaped.Replace(m.Subject)}
	case notify.TypeTeams:
		run := func(text string, strong bool) any {
			inline := map[string]any{"type": "TextRun", "text": text}
			if strong {
				inline["weight"] = "Bolder"
			}
			return map[string]any{"type": "RichTextBlock", "inlines": []any{inline}}
		}
		card := []any{run(m.Subject, true)}
		for line := range strings.Lines(m.Text) {
			if line = strings.TrimSpace(line); line != "" {
				card = append(card, run(line, false))
			}
		}
		content = map[string]any{"type": "message", "attachments": []any{map[string]any{"contentType": "application/vnd.microsoft.card.adaptive", "content": map[string]any{
			"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4", "body": card,
		}}}}
	case notify.TypeFeishu:
		content = map[string]any{"msg_type": "post", "content": map[string]any{"post": map[string]any{"en_us": map[string]any{
			"title": m.Subject, "content": []any{[]any{map[string]any{"tag": "text", "text": m.Text}}},
		}}}}
		if w.c.SigningSecret.IsSet() {
			at := strconv.FormatInt(w.now().Unix(), 10)
			content["timestamp"], content["sign"] = at, sign(at+"\n"+w.c.SigningSecret.Reveal(), "")
		}
	case notify.TypeDingTalk:
		content = map[string]any{"msgtype": "text", "text": map[string]any{"content": m.Subject + "\n" + m.Text}, "at": map[string]any{"isAtAll": false}}
		if w.c.SigningSecret.IsSet() {
			if address, err = w.signed(address); err != nil {
				return "", nil, err
			}
		}
	default:
		content = map[string]any{"version": "1", "id": m.ID, "subject": m.Subject, "text": m.Text}
	}
	body, err = json.Marshal(content)
	return address, body, err
}

func (w *Webhook) signed(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", fmt.Errorf("the address of %s is not valid", w.c.Name) // without the cause, which shows the address
	}
	at := strconv.FormatInt(w.now().UnixMilli(), 10)
	q := u.Query()
	q.Set("timestamp", at)
	q.Set("sign", sign(w.c.SigningSecret.Reveal(), at+"\n"+w.c.SigningSecret.Reveal()))
	u.RawQuery = q.Encode()
	return u.String(), nil
}

func sign(key, text string) string {
	h := hmac.New(sha256.New, []byte(key))
	h.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// escaped escapes the characters that mark links and mentions in Slack.
var escaped = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// mostSlack is the maximum length of the text in a Slack block, in characters. A message may have 50 blocks, which is enough for every notice.
const mostSlack = 3000

// pieces splits a text at line ends into pieces of at most the given number of characters. It also splits longer lines.
func pieces(text string, most int) (out []string) {
	r := []rune(text)
	for len(r) > most {
		at := most
		for i := most; i > 0; i-- {
			if r[i-1] == '\n' {
				at = i
				break
			}
		}
		out, r = append(out, string(r[:at])), r[at:]
	}
	if strings.TrimSpace(string(r)) != "" {
		out = append(out, string(r))
	}
	return out
}

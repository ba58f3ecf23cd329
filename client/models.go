package client

import (
	"bytes"
	"context"
	"encoding/json"
)

// LongModel is the length of a model's JSON, in bytes, from which on Short sends it by itself.
const LongModel = 64 << 10

// Short is the JSON of a query, or of a list of queries, in which each long model is named by its digest. It sends these models to the server, each once. What the
// query asks is the same.
func (c *Client) Short(ctx context.Context, query any) (json.RawMessage, error) {
	text, err := json.Marshal(query)
	if err != nil {
		return nil, err
	}
	return c.short(ctx, text)
}

func (c *Client) short(ctx context.Context, text json.RawMessage) (json.RawMessage, error) {
	if len(text) < LongModel {
		return text, nil
	}
	switch bytes.TrimLeft(text, " \t\r\n")[0] {
	case '[':
		var list []json.RawMessage
		if err := json.Unmarshal(text, &list); err != nil {
			return nil, err
		}
		for i := range list {
			var err error
			if list[i], err = c.short(ctx, list[i]); err != nil {
				return nil, err
			}
		}
		return json.Marshal(list)
	case '{':
		members, ok := membersOf(text)
		if !ok {
			return text, nil // the server says what is wrong with it
		}
		for name, value := range members {
			var err error
			if name == "model" {
				members[name], err = c.nameOf(ctx, value)
			} else {
				members[name], err = c.short(ctx, value)
			}
			if err != nil {
				return nil, err
			}
		}
		return json.Marshal(members)
	}
	return text, nil
}

// nameOf sends a model and names it. What belongs to the question stays beside the digest.
func (c *Client) nameOf(ctx context.Context, model json.RawMessage) (json.RawMessage, error) {
	members, ok := membersOf(model)
	if len(model) < LongModel || !ok {
		return model, nil // the server says what is wrong with it
	}
	named := map[string]json.RawMessage{}
	for _, beside := range []string{"threshold", "features"} {
		if value, ok := members[beside]; ok {
			named[beside] = value
			delete(members, beside)
		}
	}
	text, err := json.Marshal(members)
	if err != nil {
		return nil, err
	}
	kept, err := c.KeepModel(ctx, text)
	if err != nil {
		return nil, err
	}
	if named["sha256"], err = json.Marshal(kept.SHA256); err != nil {
		return nil, err
	}
	return json.Marshal(named)
}

// membersOf are the members of an object; false where it is none, or has a member twice, which the server refuses.
func membersOf(text json.RawMessage) (members map[string]json.RawMessage, ok bool) {
	d := json.NewDecoder(bytes.NewReader(text))
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		return nil, false
	}
	members = map[string]json.RawMessage{}
	for d.More() {
		token, err := d.Token()
		name, isName := token.(string)
		var value json.RawMessage
		if _, twice := members[name]; err != nil || !isName || twice || d.Decode(&value) != nil {
			return nil, false
		}
		members[name] = value
	}
	return members, true
}

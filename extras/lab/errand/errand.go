// An errand for the lab with net/http: lists, pages, adds and orders. Needs PETSTORE_URL and PETSTORE_KEY.
package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log"
	mathrand "math/rand"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"time"
)

const tries = 8

var next = regexp.MustCompile(`<([^>]+)>; rel="next"`)

// Ask waits as it is told, and otherwise longer each time; the key of a POST stays for all its tries.
func ask(method, path string, body any) (http.Header, []byte) {
	sent, mark := []byte{}, make([]byte, 16)
	if body != nil {
		sent, _ = json.Marshal(body)
	}
	rand.Read(mark)
	for try := 1; try <= tries; try++ {
		request, _ := http.NewRequest(method, os.Getenv("PETSTORE_URL")+path, bytes.NewReader(sent))
		request.GetBody = nil // else net/http sends some requests again by itself, at once
		request.Header.Set("Authorization", "Bearer "+os.Getenv("PETSTORE_KEY"))
		if method == "POST" {
			request.Header.Set("Content-Type", "application/json")
			request.Header.Set("Idempotency-Key", fmt.Sprintf("%x", mark))
		}
		wait := time.Duration(float64(100*time.Millisecond) * float64(int(1)<<try) * (0.5 + mathrand.Float64()/2))
		reply, err := http.DefaultClient.Do(request)
		if err == nil {
			text, broken := io.ReadAll(reply.Body)
			reply.Body.Close()
			if broken == nil && reply.StatusCode < 500 && reply.StatusCode != 429 {
				return reply.Header, text
			}
			told := reply.Header.Get("Retry-After")
			if seconds, err := strconv.Atoi(told); err == nil {
				wait = time.Duration(seconds) * time.Second
			} else if date, err := http.ParseTime(told); err == nil {
				wait = time.Until(date)
			}
		}
		time.Sleep(wait)
	}
	log.Fatalf("%s %s: given up", method, path)
	return nil, nil
}

func list() {
	for path := "/v1/pets?limit=10"; path != ""; {
		header, _ := ask("GET", path, nil)
		path = ""
		if found := next.FindStringSubmatch(header.Get("Link")); found != nil {
			path = found[1]
		}
	}
}

func main() {
	for round := 1; round <= 5; round++ {
		list()
		_, text := ask("POST", "/v1/pets", map[string]any{"name": fmt.Sprint("Rex ", round), "categoryId": 1})
		var pet struct{ ID int64 }
		json.Unmarshal(text, &pet)
		ask("POST", "/v1/store/orders", map[string]any{"petId": pet.ID})
	}
	ask("POST", "/v1/store/orders", map[string]any{"petId": int64(1)<<53 - 1}) // there is none: asking again would not help
	list()
}

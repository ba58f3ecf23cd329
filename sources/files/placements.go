package files

import "github.com/holdoutd/holdoutd/sources"

// placements say of each row of a table where its unit goes, while rows are not yet read in their order: eight bytes a row in a mapped file without a name, which memory
// may let go of.
type placements struct {
	mapping []byte
	places  []uint64
}

// partShift leaves 56 bits to a number.
const partShift = 56

func (p *placements) set(row uint32, at sources.Place) {
	p.places[row] = uint64(at.Part)<<partShift | uint64(at.Number) + 1
}

// goes tells a division where the rows of a piece go.
func (p *placements) goes(d *division, of piece) error {
	for row, at := range p.places[of.first : of.first+of.rows] {
		number := int64(at&(1<<partShift-1)) - 1 // -1, which is refused, where the row is of no unit
		if err := d.goes(row, int(at>>partShift), number); err != nil {
			return err
		}
	}
	return nil
}

# ghc
cat >a.hs <<X
import qualified Data.Map as M
import Control.Concurrent
main = do { let {m = foldr (\i -> M.insertWith (++) (i \`mod\` 999) [i]) M.empty [1..200000::Int]}; print (M.size m, sum (map length (M.elems m))); v <- newEmptyMVar; mapM_ (\t -> forkOS (putMVar v (length (show (product [1..2000+t]))))) [1..4::Integer]; xs <- mapM (const (takeMVar v)) [1..4]; print (length xs) }
X
$ON ghc -v0 -rtsopts -threaded -O a.hs -o a && $ON ./a +RTS -N4
